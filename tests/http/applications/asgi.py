"""An ASGI application for the proxy tests. Its streams, echoes and events wait for the client between steps, so a proxy that holds back
data makes a test time out."""
import asyncio
import json

SEEN = asyncio.Event()
GONE = []


async def send_response(send, body, status=200, kind=b'text/plain'):
    await send({'type': 'http.response.start', 'status': status, 'headers': [(b'content-type', kind)]})
    await send({'type': 'http.response.body', 'body': body})


async def stream(scope, receive, send):
    """Sends about a million bytes in pieces of 1 to 1414 bytes, without Content-Length."""
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-type', b'application/octet-stream')]})
    for size in range(1, 1415):
        await send({'type': 'http.response.body', 'body': bytes([size & 255]) * size, 'more_body': True})
    await send({'type': 'http.response.body', 'body': b''})


async def events(scope, receive, send):
    """Sends each event after the client has confirmed the previous one by requesting /seen."""
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-type', b'text/event-stream')]})
    for number in range(5):
        SEEN.clear()
        await send({'type': 'http.response.body', 'body': b'id: %d\ndata: event %d\n\n' % (number, number), 'more_body': True})
        await SEEN.wait()
    await send({'type': 'http.response.body', 'body': b''})


async def seen(scope, receive, send):
    SEEN.set()
    await send_response(send, b'')


async def echo(scope, receive, send):
    """Sends each piece of the request back before it reads the next one."""
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-type', b'application/octet-stream')]})
    more = True
    while more:
        message = await receive()
        more = message.get('more_body', False)
        await send({'type': 'http.response.body', 'body': message.get('body', b''), 'more_body': more})


async def waits(scope, receive, send):
    """Begins a response, waits for the disconnection of the client, and records it in GONE."""
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'begun', 'more_body': True})
    while (await receive())['type'] != 'http.disconnect':
        pass
    GONE.append(scope['query_string'].decode())


async def gone(scope, receive, send):
    await send_response(send, json.dumps(GONE).encode())


async def echo_request(scope, receive, send):
    """Responds with the client's port, the path, the query and the header fields that the application received."""
    fields = {name.decode(): value.decode() for name, value in scope['headers']}
    await send_response(send, json.dumps({'port': scope['client'][1], 'path': scope['path'], 'query': scope['query_string'].decode(), 'fields': fields}).encode())


async def lifespan(receive, send):
    while True:
        message = await receive()
        await send({'type': message['type'] + '.complete'})
        if message['type'] == 'lifespan.shutdown':
            return


async def app(scope, receive, send):
    if scope['type'] == 'lifespan':
        await lifespan(receive, send)
        return
    responses = {'/stream': stream, '/events': events, '/seen': seen, '/echo': echo, '/waits': waits, '/gone': gone}
    await responses.get(scope['path'], echo_request)(scope, receive, send)
