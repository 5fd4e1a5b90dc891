"""A network block device that this process implements. No page of its files is in memory, and the test decides when each read completes.
A thread that reads from the device blocks until then."""
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
    """An ext4 file system with the files of `folder`, mounted read-only at `path`. Reads complete at once, or wait until allow() permits
    them."""

    def __init__(self, folder, image, path, size):
        for module in ('nbd', 'ext4'):
            subprocess.run(['modprobe', module], check=True)
        subprocess.run(['mkfs.ext4', '-q', '-b', str(BLOCK), '-O', '^has_journal', '-d', folder, image, f'{size >> 10}k'], check=True)
        self.path = path
        self.image = open(image, 'rb')
        self.changed = threading.Condition()
        self.reads, self.allowed = 0, None            # reads that arrived; how many more may complete (None: all)
        self.device = os.open(DEVICE, os.O_RDWR)
        self.ours, theirs = socket.socketpair()
        fcntl.ioctl(self.device, SET_BLKSIZE, BLOCK)
        fcntl.ioctl(self.device, SET_SIZE_BLOCKS, size // BLOCK)
        fcntl.ioctl(self.device, SET_SOCK, theirs.fileno())
        self.theirs = theirs
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.drive, self.answer)]
        for thread in self.threads:
            thread.start()
        while not self.has_begun():
            assert self.threads[0].is_alive(), 'the kernel rejects the disk'
            time.sleep(0.05)
        os.makedirs(path, exist_ok=True)
        subprocess.run(['mount', '-t', 'ext4', '-o', 'ro,noatime', DEVICE, path], check=True)

    @staticmethod
    def has_begun():
        with open('/sys/block/nbd0/size', encoding='ascii') as stream:
            return int(stream.read()) > 0

    def drive(self):
        """Runs the kernel's side of the device; the call lasts until the device is disconnected."""
        fcntl.ioctl(self.device, DO_IT)

    def answer(self):
        while len(requests := self.ours.recv(REQUEST.size, socket.MSG_WAITALL)) == REQUEST.size:
            _, verb, handle, at, length = REQUEST.unpack(requests)
            if verb & 0xffff != READ:
                assert verb == END, verb
                break
            self.wait_for_permission()
            self.ours.sendall(REPLY.pack(REPLY_MAGIC, 0, handle) + os.pread(self.image.fileno(), length, at))
        self.ours.close()                             # otherwise the kernel waits for further replies

    def wait_for_permission(self):
        with self.changed:
            self.reads += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.allowed is None or self.allowed > 0)
            if self.allowed:
                self.allowed -= 1

    def allow(self, count):
        """Permits this many further reads; None: all."""
        with self.changed:
            self.allowed = count
            self.changed.notify_all()

    def wait_for_reads(self, count, seconds):
        """Waits until `count` reads have arrived in total; False after `seconds`."""
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
        for stream in (self.theirs, self.image):
            stream.close()
