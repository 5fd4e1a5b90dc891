"""A network block device (nbd) whose server is this process. The page cache has no page of its files, and the test decides when each read
completes: until then the reading thread blocks."""
import fcntl
import os
import socket
import struct
import subprocess
import threading
import time

SET_SOCK, SET_BLKSIZE, DO_IT, CLEAR_SOCK, SET_SIZE_BLOCKS, DISCONNECT = 0xab00, 0xab01, 0xab03, 0xab04, 0xab07, 0xab08
REQUEST, REPLY = struct.Struct('>IIQQI'), struct.Struct('>IIQ')
REPLY_MAGIC = 0x67446698
READ, END = 0, 2
DEVICE = '/dev/nbd0'
BLOCK = 4096


class Disk:
    """An ext4 file system with the files of `folder`, mounted read-only at `path`. Reads complete immediately; after allow(COUNT), only that
    many."""

    def __init__(self, folder, image, path, size):
        for module in ('nbd', 'ext4'):
            subprocess.run(['modprobe', module], check=True)
        subprocess.run(['mkfs.ext4', '-q', '-b', str(BLOCK), '-O', '^has_journal', '-d', folder, image, f'{size >> 10}k'], check=True)
        self.path = path
        self.image = open(image, 'rb')
        self.changed = threading.Condition()
        self.reads, self.allowed = 0, None            # reads that arrived; further reads that may complete (None: all)
        self.device = os.open(DEVICE, os.O_RDWR)
        self.server_end, kernel_end = socket.socketpair()
        fcntl.ioctl(self.device, SET_BLKSIZE, BLOCK)
        fcntl.ioctl(self.device, SET_SIZE_BLOCKS, size // BLOCK)
        fcntl.ioctl(self.device, SET_SOCK, kernel_end.fileno())
        self.kernel_end = kernel_end
        self.threads = [threading.Thread(target=function, daemon=True) for function in (self.run_device, self.serve_reads)]
        for thread in self.threads:
            thread.start()
        while not self.is_ready():
            assert self.threads[0].is_alive(), 'the kernel rejects the disk'
            time.sleep(0.05)
        os.makedirs(path, exist_ok=True)
        subprocess.run(['mount', '-t', 'ext4', '-o', 'ro,noatime', DEVICE, path], check=True)

    @staticmethod
    def is_ready():
        with open('/sys/block/nbd0/size', encoding='ascii') as stream:
            return int(stream.read()) > 0

    def run_device(self):
        """Runs the device in the kernel; the call returns when the device is disconnected."""
        fcntl.ioctl(self.device, DO_IT)

    def serve_reads(self):
        while len(requests := self.server_end.recv(REQUEST.size, socket.MSG_WAITALL)) == REQUEST.size:
            _, command, handle, at, length = REQUEST.unpack(requests)
            if command & 0xffff != READ:
                assert command == END, command
                break
            self.wait_for_permission()
            self.server_end.sendall(REPLY.pack(REPLY_MAGIC, 0, handle) + os.pread(self.image.fileno(), length, at))
        self.server_end.close()                             # otherwise the kernel waits for further replies

    def wait_for_permission(self):
        with self.changed:
            self.reads += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.allowed is None or self.allowed > 0)
            if self.allowed:
                self.allowed -= 1

    def allow(self, count):
        """Permits `count` further reads; None: all."""
        with self.changed:
            self.allowed = count
            self.changed.notify_all()

    def wait_for_reads(self, count, seconds):
        """Waits until `count` reads have arrived in total; returns False after `seconds`."""
        with self.changed:
            return self.changed.wait_for(lambda: self.reads >= count, seconds)

    def close(self):
        self.allow(None)
        subprocess.run(['umount', self.path], check=True)
        fcntl.ioctl(self.device, DISCONNECT)
        for thread in self.threads:
            thread.join()
        fcntl.ioctl(self.device, CLEAR_SOCK)
        os.close(self.device)
        for stream in (self.kernel_end, self.image):
            stream.close()
