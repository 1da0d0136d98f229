# The PostgreSQL server. Builds of the distributions have the probes (--enable-dtrace).
# What all of it means: docs/profiles/postgresql.md

when postgresql:statement__status

# A transaction, up to its commit or abort; who aborts says so. BEGIN lies in the query that says it, COMMIT too:
# their slices overlap and are continued.
postgresql:transaction__start..transaction__commit|transaction__abort -
postgresql:transaction__abort name="abort" level=warn -

# What a backend is busy with, from the message of the client until it waits for the next one. Unlike query__start and
# query__done this is there for prepared statements too, and ends after errors, which leave everything by a jump.
postgresql:statement__status while=arg0 name="query" text=arg0:str

# The parts of it. What an error leaves ends with the transaction.
postgresql:query__parse__start..query__parse__done name="parse" - nested
postgresql:query__rewrite__start..query__rewrite__done name="rewrite" - nested
postgresql:query__plan__start..query__plan__done name="plan" - nested
postgresql:query__execute__start..query__execute__done name="execute" - nested

# Sorts begin and end anywhere in a plan, even after it: no spans.
postgresql:sort__start name="sort start" kind=arg0 unique=arg1:bool keys=arg2 work_mem_kb=arg3
postgresql:sort__done name="sort done" on_disk=arg0:bool space=arg1

# Waiting for each other.
postgresql:lock__wait__start..lock__wait__done name="lock wait" nested \
	type=arg4 mode=arg5 field1=arg0 field2=arg1 field3=arg2 field4=arg3
postgresql:lwlock__wait__start..lwlock__wait__done name="lwlock wait" nested lock=arg0:str mode=arg1
postgresql:deadlock__found name="deadlock" level=error

# Checkpoints.
postgresql:checkpoint__start..checkpoint__done name="checkpoint" nested flags=arg0:hex \
	end.written=arg0 end.buffers=arg1 end.wal_added=arg2 end.wal_removed=arg3 end.wal_recycled=arg4
postgresql:buffer__checkpoint__start..buffer__checkpoint__done name="checkpoint buffers" - nested
postgresql:buffer__sync__start..buffer__sync__done name="write buffers" nested \
	buffers=arg0 to_write=arg1 end.written=arg1
postgresql:buffer__checkpoint__sync__start name="sync files"
postgresql:clog__checkpoint__start..clog__checkpoint__done name="checkpoint clog" - nested
postgresql:subtrans__checkpoint__start..subtrans__checkpoint__done name="checkpoint subtrans" - nested
postgresql:multixact__checkpoint__start..multixact__checkpoint__done name="checkpoint multixact" - nested
postgresql:twophase__checkpoint__start..twophase__checkpoint__done name="checkpoint twophase" - nested

# WAL: a backend that has to write it because all its buffers are full; a new segment.
postgresql:wal__buffer__write__dirty__start..wal__buffer__write__dirty__done name="wal buffers full" - nested
postgresql:wal__switch name="wal switch"

# What files had to give and take, in bytes, per process.
postgresql:smgr__md__read__done name="bytes read" counter=+arg6
postgresql:smgr__md__write__done name="bytes written" counter=+arg6
