"""What sluice does otherwise than nginx on purpose: the table that the generated comparison allows, with the reason for each row.

src/import/README.md has the same list in prose.
"""
import re

ALL = None  # the whole answer is another one


def method(request):
    return request.split(' ', 1)[0]


def target(request):
    return request.split(' | ')[0].split(' ', 1)[1]


def field(request, name):
    return next((part[len(name) + 2:] for part in request.split(' | ')[1:] if part.startswith(f'{name}: ')), '')


def charset_alone(there, here):
    kind, _, charset = here.get('content-type', '').partition('; charset=')
    return charset and there.get('content-type') == kind and kind.startswith('text/')


# (what, why, names of what may differ, whether it is so in this case)
DELIBERATE = (
    ('OPTIONS is answered for files, with 204 and Allow', 'RFC 9110 9.3.7', ALL,
     lambda request, there, here: method(request) == 'OPTIONS' and there.get('status') == 405 and here.get('status') == 204),
    ('a method that is not known is 501, not 405', 'RFC 9110 15.6.2', ALL,
     lambda request, there, here: method(request) == 'PROPFIND' and there.get('status') == 405 and here.get('status') == 501),
    ('a fragment in a request target is refused', 'RFC 9112 3.2: no request target has one', ALL,
     lambda request, there, here: '#' in target(request) and here.get('status') == 400),
    ('a Range that is not valid is ignored, not 416', 'RFC 9110 14.2', ALL,
     lambda request, there, here: there.get('status') == 416 and here.get('status') == 200 and
        re.search(r'bytes=(x|5-2|\d*-\d{19,})$|lines', field(request, 'Range'))),
    ('charset is said with all of text/*', 'one rule for all text', ('content-type',),
     lambda request, there, here: charset_alone(there, here)),
)


def explained(request, there, here):
    """True where rows of the table explain all that is different in the two answers."""
    left = {name for name in {*there, *here} if there.get(name) != here.get(name)}
    for _, _, names, applies in DELIBERATE:
        if left and applies(request, there, here):
            left -= left if names is ALL else set(names)
    return not left
