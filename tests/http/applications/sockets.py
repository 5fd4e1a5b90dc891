"""A WebSocket server: it echoes messages, and pings or closes on request. It appends the close code and reason of each connection to the
file NOTES. Usage: sockets.py PORT NOTES"""
import asyncio
import sys

import websockets


async def serve(connection):
    try:
        async for message in connection:
            if message == 'ping me':
                pong = await connection.ping(b'are you there')
                await pong
                await connection.send('you are')
            elif message == 'close me':
                await connection.close(4002, 'as you like')
            else:
                await connection.send(message)
    finally:
        with open(sys.argv[2], 'a', encoding='utf-8') as notes:
            notes.write(f'{connection.close_code} {connection.close_reason}\n')


async def main():
    async with websockets.serve(serve, '127.0.0.1', int(sys.argv[1]), max_size=1 << 25, ping_interval=None,
                                subprotocols=['chat']):
        await asyncio.Future()


asyncio.run(main())
