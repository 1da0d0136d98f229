# What the PostgreSQL server does with its shared buffers: each access is a hit, so it costs. Not used by itself;
# --profile postgresql --profile postgresql-buffers. See docs/profiles/postgresql.md

postgresql:smgr__md__read__start..smgr__md__read__done name="read" nested \
	relation=arg4 block=arg1 fork=arg0 database=arg3 end.bytes=arg6
postgresql:buffer__flush__start..buffer__flush__done name="flush buffer" nested \
	relation=arg4 block=arg1 fork=arg0 database=arg3
postgresql:wal__insert name="wal records" counter=+1

# 16 dropped an argument of these: whether the buffer was found is the 8th before and the 7th since.
when postgresql:buffer__write__dirty__start
postgresql:buffer__read__done name="buffer hits" counter=+1 if arg7 != 0
postgresql:buffer__read__done name="buffer misses" counter=+1 if arg7 == 0
postgresql:buffer__write__dirty__start..buffer__write__dirty__done name="write dirty buffer" nested \
	relation=arg4 block=arg1 fork=arg0 database=arg3
when postgresql:buffer__extend__start
postgresql:buffer__read__done name="buffer hits" counter=+1 if arg6 != 0
postgresql:buffer__read__done name="buffer misses" counter=+1 if arg6 == 0
postgresql:buffer__extend__start..buffer__extend__done name="extend" nested relation=arg3 fork=arg0 by=arg5
