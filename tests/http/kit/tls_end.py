"""The end of a TLS connection without close_notify, alike in every Python."""
import ssl


def receive(stream, size=65536):
    """stream.recv; an end without close_notify is SSLEOFError, or b'' where the stream suppresses ragged ends.

    Python before 3.11.3 with OpenSSL 3 (Debian 12 has 3.11.2) raises a plain SSLError there, and never suppresses it.
    """
    try:
        return stream.recv(size)
    except ssl.SSLError as error:
        if error.reason != 'UNEXPECTED_EOF_WHILE_READING' or isinstance(error, ssl.SSLEOFError):
            raise
        if getattr(stream, 'suppress_ragged_eofs', False):
            return b''
        raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, str(error)) from error
