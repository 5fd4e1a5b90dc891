"""Makes every Python version report the end of a TLS connection without close_notify in the same way."""
import ssl


def receive(stream, size=65536):
    """Calls stream.recv. An end without close_notify raises SSLEOFError, or returns b'' if the stream suppresses ragged EOFs.

    Python before 3.11.3 with OpenSSL 3 (Debian 12 has 3.11.2) raises a plain SSLError in both cases.
    """
    try:
        return stream.recv(size)
    except ssl.SSLError as error:
        if error.reason != 'UNEXPECTED_EOF_WHILE_READING' or isinstance(error, ssl.SSLEOFError):
            raise
        if getattr(stream, 'suppress_ragged_eofs', False):
            return b''
        raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, str(error)) from error
