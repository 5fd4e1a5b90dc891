// An upstream server in Node.js. Usage: node server.js PORT [NOTES]. /noted appends the query's `id` to the file NOTES before it responds.
'use strict';
const fs = require('fs');
const http = require('http');

let connections = 0;

function echo(request, response) {
  request.pipe(response);
}

function counted(request, response) {
  response.end(String(connections));
}

function chunked(request, response) {
  for (let size = 1; size <= 500; size++) response.write(Buffer.alloc(size, size & 255));
  response.end();
}

function trailers(request, response) {
  let length = 0;
  request.on('data', (piece) => { length += piece.length; });
  request.on('end', () => {
    response.writeHead(200, { Trailer: 'X-Length, X-Told' });
    response.write('body');
    response.addTrailers({ 'X-Length': String(length), 'X-Told': request.trailers['x-sum'] || 'nothing' });
    response.end();
  });
}

function hints(request, response) {
  response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
  response.writeProcessing();
  response.end('late');
}

function noted(request, response) {
  const id = new URL(request.url, 'http://here').searchParams.get('id');
  request.resume();
  request.on('end', () => {
    fs.appendFileSync(process.argv[3], `${id}\n`);
    response.end(id);
  });
}

function expectation(request, response) {
  response.end(request.headers.expect || 'none');
}

const answers = { '/echo': echo, '/counted': counted, '/chunked': chunked, '/trailers': trailers, '/hints': hints,
                  '/noted': noted, '/expectation': expectation };

const server = http.createServer((request, response) => {
  const answer = answers[request.url.split('?')[0]] || ((_, missing) => missing.writeHead(404).end());
  answer(request, response);
});

server.keepAliveTimeout = 60_000; // tests count the connections, also on a busy machine
server.on('connection', () => { connections++; });
server.on('upgrade', (request, socket, head) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
  socket.write(head);
  socket.pipe(socket);
});
server.listen(Number(process.argv[2]), '127.0.0.1');
