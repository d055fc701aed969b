// fetch get URL | put URL FILE | stream URL FILE: the answer's body, by Go's net/http and its proxy from the environment.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func request() (*http.Request, error) {
	verb, url := os.Args[1], os.Args[2]
	if verb == "get" {
		return http.NewRequest("GET", url, nil)
	}
	file, err := os.Open(os.Args[3])
	if err != nil {
		return nil, err
	}
	if verb == "stream" { // of a reader that net/http cannot measure: chunked
		return http.NewRequest("PUT", url, struct{ io.Reader }{file})
	}
	made, err := http.NewRequest("PUT", url, file)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	made.ContentLength = info.Size()
	return made, nil
}

func main() {
	made, err := request()
	if err == nil {
		var answer *http.Response
		answer, err = http.DefaultClient.Do(made)
		if err == nil {
			_, err = io.Copy(os.Stdout, answer.Body)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
