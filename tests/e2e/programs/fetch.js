// fetch.js get URL | put URL FILE | stream URL FILE: the answer's body, by undici and its ProxyAgent.
'use strict'
const fs = require('fs')
const { ProxyAgent, request } = require('undici')

async function main ([verb, url, file]) {
  const dispatcher = new ProxyAgent({ uri: process.env.https_proxy, requestTls: { ca: fs.readFileSync(process.env.TRUST) } })
  const how = { dispatcher, method: verb === 'get' ? 'GET' : 'PUT' }
  if (verb === 'put') how.body = fs.readFileSync(file)
  if (verb === 'stream') how.body = fs.createReadStream(file, { highWaterMark: 5000 })
  const { body } = await request(url, how)
  process.stdout.write(Buffer.from(await body.arrayBuffer()))
  await dispatcher.close()
}

main(process.argv.slice(2)).catch(e => { console.error(e); process.exitCode = 1 })
