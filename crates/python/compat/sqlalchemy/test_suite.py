from sqlalchemy.testing import config
from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import LongNameBlowoutTest as _LongNameBlowoutTest


class LongNameBlowoutTest(_LongNameBlowoutTest):
    def ix(self, metadata, connection):
        config.skip_test("there are no indexes but keys")
