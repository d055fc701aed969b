// chat.js HOST: messages of several sizes to wss://HOST/chat, which answers with each one reversed; prints how many it got.
'use strict'
const fs = require('fs')
const http = require('http')
const https = require('https')
const tls = require('tls')
const WebSocket = require('ws')

const host = process.argv[2]
const proxy = new URL(process.env.https_proxy)
const messages = ['hello', 'a', 'b'.repeat(1000), 'c'.repeat(200000)].map(m => m + '!')

http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: host + ':443' })
  .on('connect', (_, socket) => {
    const ca = fs.readFileSync(process.env.TRUST)
    const agent = new https.Agent()
    agent.createConnection = () => tls.connect({ socket, servername: host, ca })
    const ws = new WebSocket('wss://' + host + '/chat', { agent })
    let got = 0
    ws.on('open', () => ws.send(messages[0]))
    ws.on('message', data => {
      if (data.toString() !== [...messages[got]].reverse().join('')) throw new Error('message ' + got)
      if (++got === messages.length) ws.close()
      else ws.send(messages[got])
    })
    ws.on('close', code => console.log(got, code))
  })
  .end()
