"""Slow clients as a program: `slow_clients.py ADDRESS PORT COUNT TARGET`. Every other client sends one byte of a request per second; the
others request TARGET and do not read. Prints "open" when all are connected; after a line on standard input, the number of lost ones."""
import select
import socket
import sys


def connect(address, port, target, reads):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.bind((address, 0))
    client.connect(('127.0.0.1', port))
    client.sendall(f'GET {target} HTTP/1.1\r\n'.encode() + (b'Host: localhost\r\n\r\n' if reads else b'X-Slow: '))
    client.setblocking(False)
    return client


def is_lost(client, reads):
    """True if the server has closed or reset it, or responded to an incomplete request."""
    try:
        received = client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return not received or not reads


def main():
    address, port, count, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    clients = [(connect(address, port, target, number % 2 == 0), number % 2 == 0) for number in range(count)]
    print('open', flush=True)
    lost = set()
    while not select.select([sys.stdin], [], [], 1)[0]:
        for client, reads in clients:
            if not reads and client not in lost:
                try:
                    client.send(b'x')
                except OSError:
                    lost.add(client)
    lost |= {client for client, reads in clients if is_lost(client, reads)}
    print(f'lost {len(lost)}', flush=True)


if __name__ == '__main__':
    main()
