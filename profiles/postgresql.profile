# PostgreSQL server, built with --enable-dtrace as the distributions do. See docs/profiles/postgresql.md.
when postgresql:query__start
postgresql:transaction__start..transaction__commit|transaction__abort lxid=arg0
postgresql:transaction__abort name="abort" level=warn lxid=arg0
postgresql:query__start..query__done text=arg0:str
postgresql:query__parse__start..query__parse__done name="parse" -
postgresql:query__rewrite__start..query__rewrite__done name="rewrite" -
postgresql:query__plan__start..query__plan__done name="plan" -
postgresql:query__execute__start..query__execute__done name="execute" -
