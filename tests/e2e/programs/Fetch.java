// Fetch get URL | put URL FILE | stream URL FILE: the answer's body, by java.net.http as it comes (it offers HTTP/2).
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

public class Fetch {
    public static void main(String[] words) throws Exception {
        URI proxy = URI.create(System.getenv("https_proxy"));
        HttpClient client = HttpClient.newBuilder()
            .proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort())))
            .connectTimeout(Duration.ofSeconds(30)).build();
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(words[1])).timeout(Duration.ofSeconds(60));
        if (words[0].equals("put")) {
            request.PUT(BodyPublishers.ofFile(Path.of(words[2])));
        } else if (words[0].equals("stream")) {
            byte[] body = Files.readAllBytes(Path.of(words[2]));
            request.PUT(BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(body)));
        }
        System.out.write(client.send(request.build(), BodyHandlers.ofByteArray()).body());
        System.out.flush();
    }
}
