/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripts of test_spans.c and what the sink is told for each; statistics that are not zero come last. */
static const struct scenario scenarios[] = {
	{
		.name = "nested_scope_ends_with_the_outer",
		.script = "begin a; begin in; begin b; end a; end b; end in;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 in #2 span=2 parent=1\n"
		       "begin 1/1 @30 b #3 span=3 parent=2\n"
		       "end 1/1 @40 b #3 span=3 outer\n"
		       "end 1/1 @40 in #2 span=2 left\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "begin 1/1 @40 b #4 span=3 parent=2 flow=F1 continued | parent=2\n"
		       "end 1/1 @50 b #4 span=3 normal\n"
		       "stray=1\n"
		       "reordered=1\n",
	},
	{
		.name = "nested_scope_ends_by_itself",
		.script = "begin in; begin in; end in; end in;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 in #1 span=1\n"
		       "begin 1/1 @20 in #2 span=2 parent=1\n"
		       "end 1/1 @30 in #2 span=2 normal\n"
		       "end 1/1 @40 in #1 span=1 normal\n",
	},
	{
		.name = "nested_scope_in_a_nested_one",
		.script = "begin in; begin instate; end in; end instate;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 in #1 span=1\n"
		       "begin 1/1 @20 instate #2 span=2 parent=1\n"
		       "end 1/1 @30 instate #2 span=2 left\n"
		       "end 1/1 @30 in #1 span=1 normal\n"
		       "reordered=1\n",
	},
	{
		.name = "state_ends_the_one_before",
		.script = "begin state 1; begin in; begin state 2; begin a; end state; end state; begin "
			  "state 3; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 state #1 span=1 to=1\n"
		       "begin 1/1 @20 in #2 span=2 parent=1\n"
		       "end 1/1 @30 in #2 span=2 left\n"
		       "end 1/1 @30 state #1 span=1 normal\n"
		       "begin 1/1 @30 state #3 span=3 to=2\n"
		       "begin 1/1 @40 a #4 span=4 parent=3\n"
		       "end 1/1 @50 a #4 span=4 outer\n"
		       "end 1/1 @50 state #3 span=3 normal\n"
		       "begin 1/1 @50 a #5 span=4 parent=3 flow=F1 continued | parent=3\n"
		       "begin 1/1 @70 state #6 span=5 parent=4 to=3\n"
		       "end 1/1 @80 state #6 span=5 outer\n"
		       "end 1/1 @80 a #5 span=4 normal\n"
		       "begin 1/1 @80 state #7 span=5 parent=4 flow=F2 continued | parent=4\n"
		       "reordered=3\n",
	},
	{
		.name = "state_after_a_gap",
		.script = "begin state 1; begin in; skip 2; begin state 2; end state;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 state #1 span=1 to=1\n"
		       "begin 1/1 @20 in #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=2\n"
		       "end 1/1 @30 in #2 span=2 lost\n"
		       "end 1/1 @30 state #1 span=1 normal\n"
		       "begin 1/1 @30 state #3 span=3 to=2\n"
		       "end 1/1 @40 state #3 span=3 normal\n"
		       "lost=2\n"
		       "lostends=1\n",
	},
	{
		.name = "sums_are_of_a_name",
		.script = "counter got x; counter got y; counter got x; counter sum 4; counter got y;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "counter 1/1 @10 x got=1\n"
		       "counter 1/1 @20 y got=1\n"
		       "counter 1/1 @30 x got=2\n"
		       "counter 1/1 @40 sum=4\n"
		       "counter 1/1 @50 y got=2\n",
	},
	{
		.name = "sums_are_of_a_process",
		.script = "counter sum 5; counter sum -7; counter hits; thread 1 2; counter sum 10; counter "
			  "hits; "
			  "counter fsum 0.5; counter fsum 0.25; thread 2 2; counter sum 1; counter hits;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "counter 1/1 @10 sum=5\n"
		       "counter 1/1 @20 sum=-2\n"
		       "counter 1/1 @30 hits=1\n"
		       "thread 1/2 name=\n"
		       "counter 1/2 @40 sum=8\n"
		       "counter 1/2 @50 hits=2\n"
		       "counter 1/2 @60 fsum=0.5\n"
		       "counter 1/2 @70 fsum=0.75\n"
		       "process 2 name=\n"
		       "thread 2/2 name=\n"
		       "counter 2/2 @80 sum=1\n"
		       "counter 2/2 @90 hits=1\n",
	},
	{
		.name = "enter_unknown_id_silent",
		.script = "enter - 5; exit - 5; enter - 0; enter A 0;",
		.log = "unseen=3\n"
		       "stray=1\n",
	},
	{
		.name = "enter_unseen_on_known_site",
		.script = "enter A 5; exit A 5; enter A 5; exit A 5; close A 5;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 A #1 span=1 flow=F1 unseen | span=1 fields=\"not seen\"\n"
		       "end 1/1 @20 A #1 span=1 normal\n"
		       "begin 1/1 @30 A #2 span=1 flow=F1 reentered,unseen | span=1 fields=\"not seen\"\n"
		       "end 1/1 @40 A #2 span=1 normal\n"
		       "close 1 @50 span=1\n"
		       "unseen=1\n",
	},
	{
		.name = "enter_late_is_no_anomaly",
		.script = "enter A 5 late; exit A 5; new B 6 late; enter B 6; exit B 6;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 A #1 span=1 flow=F1 unseen | span=1 fields=\"not seen\"\n"
		       "end 1/1 @20 A #1 span=1 normal\n"
		       "new 1 @30 span=2\n"
		       "begin 1/1 @40 B #2 span=2 flow=F2 unseen | span=2 fields=\"not seen\"\n"
		       "end 1/1 @50 B #2 span=2 normal\n",
	},
	{
		.name = "new_without_enter_no_slice",
		.script = "new A 5; close A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "close 1 @20 span=1\n",
	},
	{
		.name = "reenter_n_times",
		.script = "new Q 7 select 3; enter Q 7; exit Q 7; enter Q 7; exit Q 7; enter Q 7; "
			  "exit Q 7; close Q 7;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1 sql=\"select\" rows=3\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 Q #1 span=1 flow=F1 sql=\"select\" rows=3 | span=1\n"
		       "end 1/1 @30 Q #1 span=1 normal\n"
		       "begin 1/1 @40 Q #2 span=1 flow=F1 reentered sql=\"select\" rows=3 | span=1\n"
		       "end 1/1 @50 Q #2 span=1 normal\n"
		       "begin 1/1 @60 Q #3 span=1 flow=F1 reentered sql=\"select\" rows=3 | span=1\n"
		       "end 1/1 @70 Q #3 span=1 normal\n"
		       "close 1 @80 span=1\n",
	},
	{
		.name = "enter_on_thread_b_created_on_a",
		.script = "begin a; new A 5; end a; thread 1 2; enter A 5; begin b; end b; exit A 5; "
			  "thread 1 1; enter A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "new 1 @20 span=2 parent=1\n"
		       "end 1/1 @30 a #1 span=1 normal\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @40 A #2 span=2 parent=1 flow=F1 | span=2 parent=1\n"
		       "begin 1/2 @50 b #3 span=3 parent=2\n"
		       "end 1/2 @60 b #3 span=3 normal\n"
		       "end 1/2 @70 A #2 span=2 normal\n"
		       "begin 1/1 @80 A #4 span=2 parent=1 flow=F1 reentered | span=2 parent=1\n"
		       "end 1/1 @90 A #4 span=2 normal\n",
	},
	{
		.name = "same_span_two_threads_overlap",
		.script = "new A 5; enter A 5; thread 1 2; enter A 5; thread 1 1; exit A 5; thread 1 2; "
			  "exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @30 A #2 span=1 flow=F1 reentered | span=1\n"
		       "end 1/1 @40 A #1 span=1 normal\n"
		       "end 1/2 @50 A #2 span=1 normal\n",
	},
	{
		.name = "interleaved_non_lifo",
		.script = "new A 5; enter A 5; new B 6; enter B 6; exit A 5; exit B 6;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "new 1 @30 span=2 parent=1\n"
		       "begin 1/1 @40 B #2 span=2 parent=1 flow=F2 | span=2\n"
		       "end 1/1 @50 B #2 span=2 outer\n"
		       "end 1/1 @50 A #1 span=1 normal\n"
		       "begin 1/1 @50 B #3 span=2 parent=1 flow=F2 reentered,continued | span=2 parent=1\n"
		       "end 1/1 @60 B #3 span=2 normal\n"
		       "reordered=1\n",
	},
	{
		.name = "interleaved_scopes",
		.script = "begin ai 4; begin b; begin c; end ai; end c; end b;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 ai #1 span=1 i=4\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "begin 1/1 @30 c #3 span=3 parent=2\n"
		       "end 1/1 @40 c #3 span=3 outer\n"
		       "end 1/1 @40 b #2 span=2 outer\n"
		       "end 1/1 @40 ai #1 span=1 normal\n"
		       "begin 1/1 @40 b #4 span=2 parent=1 flow=F1 continued | parent=1\n"
		       "begin 1/1 @40 c #5 span=3 parent=2 flow=F2 continued\n"
		       "end 1/1 @50 c #5 span=3 normal\n"
		       "end 1/1 @60 b #4 span=2 normal\n"
		       "reordered=1\n",
	},
	{
		.name = "interleaved_fields_again",
		.script = "new A 5; new Q 6 select 1; enter A 5; enter Q 6; exit A 5; exit Q 6; enter A 5; "
			  "exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "new 1 @20 span=2 sql=\"select\" rows=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @40 Q #2 span=2 flow=F2 sql=\"select\" rows=1 | span=2 parent=0\n"
		       "end 1/1 @50 Q #2 span=2 outer\n"
		       "end 1/1 @50 A #1 span=1 normal\n"
		       "begin 1/1 @50 Q #3 span=2 flow=F2 reentered,continued sql=\"select\" rows=1 | "
		       "span=2\n"
		       "end 1/1 @60 Q #3 span=2 normal\n"
		       "begin 1/1 @70 A #4 span=1 flow=F1 reentered | span=1\n"
		       "end 1/1 @80 A #4 span=1 normal\n"
		       "reordered=1\n",
	},
	{
		.name = "close_while_entered",
		.script = "new A 5; enter A 5; close A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @30 A #1 span=1 closed\n"
		       "close 1 @30 span=1\n"
		       "stray=1\n"
		       "closed=1\n",
	},
	{
		.name = "close_while_entered_inside",
		.script = "new A 5; enter A 5; begin b; close A 5; end b;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @30 b #2 span=2 parent=1\n"
		       "end 1/1 @40 b #2 span=2 outer\n"
		       "end 1/1 @40 A #1 span=1 closed\n"
		       "begin 1/1 @40 b #3 span=2 parent=1 flow=F2 continued | parent=1\n"
		       "close 1 @40 span=1\n"
		       "end 1/1 @50 b #3 span=2 normal\n"
		       "closed=1\n"
		       "reordered=1\n",
	},
	{
		.name = "close_while_entered_elsewhere",
		.script = "new A 5; thread 1 2; at 100; enter A 5; begin b; thread 1 1; at 50; close A 5; "
			  "thread 1 2; at 120; end b;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @100 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/2 @110 b #2 span=2 parent=1\n"
		       "end 1/2 @110 b #2 span=2 outer\n"
		       "end 1/2 @110 A #1 span=1 closed\n"
		       "begin 1/2 @110 b #3 span=2 parent=1 flow=F2 continued | parent=1\n"
		       "close 1 @50 span=1\n"
		       "end 1/2 @120 b #3 span=2 normal\n"
		       "closed=1\n"
		       "reordered=1\n",
	},
	{
		.name = "close_recursive",
		.script = "new A 5; enter A 5; begin b; enter A 5; close A 5; end b;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @30 b #2 span=2 parent=1\n"
		       "begin 1/1 @40 A #3 span=1 flow=F1 reentered | span=1 parent=0\n"
		       "end 1/1 @50 A #3 span=1 closed\n"
		       "end 1/1 @50 b #2 span=2 outer\n"
		       "end 1/1 @50 A #1 span=1 closed\n"
		       "begin 1/1 @50 b #4 span=2 parent=1 flow=F2 continued | parent=1\n"
		       "close 1 @50 span=1\n"
		       "end 1/1 @60 b #4 span=2 normal\n"
		       "closed=1\n"
		       "reordered=1\n",
	},
	{
		.name = "exit_without_enter",
		.script = "new A 5; exit A 5; enter A 5; thread 1 2; exit A 5; close A 9; "
			  "record rec 9 h 1; end a; thread 1 1; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @80 A #1 span=1 normal\n"
		       "stray=5\n",
	},
	{
		.name = "recursive_scopes",
		.script = "begin ai 1; begin ai 2; begin ai 3; end ai; end ai; end ai;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 ai #1 span=1 i=1\n"
		       "begin 1/1 @20 ai #2 span=2 parent=1 i=2\n"
		       "begin 1/1 @30 ai #3 span=3 parent=2 i=3\n"
		       "end 1/1 @40 ai #3 span=3 normal\n"
		       "end 1/1 @50 ai #2 span=2 normal\n"
		       "end 1/1 @60 ai #1 span=1 normal\n",
	},
	{
		.name = "recursive_span",
		.script = "new A 5; enter A 5; enter A 5; exit A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @30 A #2 span=1 flow=F1 reentered | span=1 parent=0\n"
		       "end 1/1 @40 A #2 span=1 normal\n"
		       "end 1/1 @50 A #1 span=1 normal\n",
	},
	{
		.name = "field_types_and_u64_max_nan",
		.script = "event all -5 18446744073709551615 nan 1 text dbg; event all 1 2;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 all i=-5 u=18446744073709551615 f=nan b=true s=\"text\" d=\"dbg\"\n"
		       "instant 1/1 @20 all i=1 u=2\n",
	},
	{
		.name = "dup_field_keys",
		.script = "new dup 5 1 first second; enter dup 5; exit dup 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1 k=1 name=\"first\" name=\"second\"\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 second #1 span=1 flow=F1 k=1 name=\"first\" name=\"second\" | span=1\n"
		       "end 1/1 @30 second #1 span=1 normal\n",
	},
	{
		.name = "message_and_name_user",
		.script = "event message hello; event message; new Named 5 work 1; enter Named 5; "
			  "exit Named 5; begin named job; end named; begin named; end named;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 hello message=\"hello\"\n"
		       "instant 1/1 @20 event f.c:1\n"
		       "new 1 @30 span=1 name=\"work\" x=1\n"
		       "begin 1/1 @40 work #1 span=1 flow=F1 name=\"work\" x=1 | span=1\n"
		       "end 1/1 @50 work #1 span=1 normal\n"
		       "begin 1/1 @60 job #2 span=2 name=\"job\"\n"
		       "end 1/1 @70 job #2 span=2 normal\n"
		       "begin 1/1 @80 named #3 span=3\n"
		       "end 1/1 @90 named #3 span=3 normal\n",
	},
	{
		.name = "message_and_name_plain",
		.script = "event message hello; begin named job; end named;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 event f.c:1 message=\"hello\"\n"
		       "begin 1/1 @20 named #1 span=1 name=\"job\"\n"
		       "end 1/1 @30 named #1 span=1 normal\n",
		.opts = {.naming = MT_NAMING_PLAIN},
	},
	{
		.name = "dev_fqn",
		.script = "event message hello; begin named job; end named; new Named 5 work 1; "
			  "enter Named 5; exit Named 5; counter depth 3;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 app::db::event f.c:1 message=\"hello\"\n"
		       "begin 1/1 @20 app::db::named #1 span=1 name=\"job\"\n"
		       "end 1/1 @30 app::db::named #1 span=1 normal\n"
		       "new 1 @40 span=2 name=\"work\" x=1\n"
		       "begin 1/1 @50 app::db::Named #2 span=2 flow=F1 name=\"work\" x=1 | span=2\n"
		       "end 1/1 @60 app::db::Named #2 span=2 normal\n"
		       "counter 1/1 @70 depth=3\n",
		.opts = {.naming = MT_NAMING_DEV},
	},
	{
		.name = "worked_example",
		.script = "comm main; new Q 7 x 1; enter Q 7; event message hi; exit Q 7; close Q 7;",
		.log = "process 1 name=main\n"
		       "new 1 @20 span=1 sql=\"x\" rows=1\n"
		       "thread 1/1 name=main\n"
		       "begin 1/1 @30 app::db::Q #1 span=1 flow=F1 sql=\"x\" rows=1 | span=1\n"
		       "instant 1/1 @40 app::db::event f.c:1 parent=1 message=\"hi\"\n"
		       "end 1/1 @50 app::db::Q #1 span=1 normal\n"
		       "close 1 @60 span=1\n",
		.opts = {.naming = MT_NAMING_DEV},
	},
	{
		.name = "two_threads_same_name",
		.script = "comm worker; begin a; thread 1 2; comm worker; begin a; thread 1 1; end a; "
			  "thread 1 2; end a;",
		.log = "process 1 name=worker\n"
		       "thread 1/1 name=worker\n"
		       "begin 1/1 @20 a #1 span=1\n"
		       "thread 1/2 name=worker\n"
		       "begin 1/2 @40 a #2 span=2\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "end 1/2 @60 a #2 span=2 normal\n",
	},
	{
		.name = "unnamed_threads",
		.script = "begin a; thread 1 2; begin a; end a; thread 1 1; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @20 a #2 span=2\n"
		       "end 1/2 @30 a #2 span=2 normal\n"
		       "end 1/1 @40 a #1 span=1 normal\n",
	},
	{
		.name = "comm_longer_than_15",
		.script = "comm monarch-pytokio; begin a; tname thread_name monarch-pytokio-worker-12; "
			  "comm other; tname thread_name monarch-pytokio-worker-12; end a;",
		.log = "process 1 name=monarch-pytokio\n"
		       "thread 1/1 name=monarch-pytokio\n"
		       "begin 1/1 @20 a #1 span=1\n"
		       "thread 1/1 name=monarch-pytokio-worker-12\n"
		       "process 1 name=other\n"
		       "end 1/1 @60 a #1 span=1 normal\n",
	},
	{
		.name = "names_are_told_again",
		.script = "process 1 1000 7 42 app app-x; begin a; end a; execid execution_id run1; "
			  "pname process_name nice; process 1 1000 7 42 app app-x; "
			  "execid execution_id run1;",
		.log = "process 1 name=app ppid=7 uid=42 cmdline=app-x\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=1\n"
		       "end 1/1 @30 a #1 span=1 normal\n"
		       "process 1 name=app ppid=7 uid=42 cmdline=app-x exec=run1\n"
		       "process 1 name=nice ppid=7 uid=42 cmdline=app-x exec=run1\n",
	},
	{
		.name = "process_named_by_its_first_thread",
		.script = "thread 1 2; comm w; begin a; end a; thread 1 1; comm main; comm other;",
		.log = "process 1 name=\n"
		       "thread 1/2 name=w\n"
		       "begin 1/2 @20 a #1 span=1\n"
		       "end 1/2 @30 a #1 span=1 normal\n"
		       "process 1 name=main\n"
		       "process 1 name=other\n",
	},
	{
		.name = "overload_drop_marker",
		.script = "begin a; end a; skip 3; begin a; end a; thread 1 2; begin b; end b; skip 1; "
			  "event tick 1;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "lost 1/1 @30 n=3\n"
		       "begin 1/1 @30 a #2 span=2\n"
		       "end 1/1 @40 a #2 span=2 normal\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @50 b #3 span=3\n"
		       "end 1/2 @60 b #3 span=3 normal\n"
		       "lost 1/2 @70 n=1\n"
		       "instant 1/2 @70 tick i=1\n"
		       "lost=4\n",
	},
	{
		.name = "gap_closes_what_is_above",
		.script = "begin a; begin b; begin c; skip 2; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "begin 1/1 @30 c #3 span=3 parent=2\n"
		       "lost 1/1 @40 n=2\n"
		       "end 1/1 @40 c #3 span=3 lost\n"
		       "end 1/1 @40 b #2 span=2 lost\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "lost=2\n"
		       "lostends=2\n",
	},
	{
		.name = "gap_span_exit_is_deeper",
		.script = "new A 5; enter A 5; begin b; skip 1; exit A 5; end b;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @30 b #2 span=2 parent=1\n"
		       "lost 1/1 @40 n=1\n"
		       "end 1/1 @40 b #2 span=2 lost\n"
		       "end 1/1 @40 A #1 span=1 normal\n"
		       "lost=1\n"
		       "stray=1\n"
		       "lostends=1\n",
	},
	{
		.name = "gap_spares_what_began_after",
		.script = "begin a; begin b; skip 1; begin c; end a; end c;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=1\n"
		       "begin 1/1 @30 c #3 span=3 parent=2\n"
		       "end 1/1 @40 c #3 span=3 outer\n"
		       "end 1/1 @40 b #2 span=2 lost\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "begin 1/1 @40 c #4 span=3 parent=2 flow=F1 continued | parent=2\n"
		       "end 1/1 @50 c #4 span=3 normal\n"
		       "lost=1\n"
		       "reordered=1\n"
		       "lostends=1\n",
	},
	{
		.name = "gap_is_over_with_the_slice",
		.script = "begin a; begin b; skip 1; end b; begin c; end a; end c;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=1\n"
		       "end 1/1 @30 b #2 span=2 normal\n"
		       "begin 1/1 @40 c #3 span=3 parent=1\n"
		       "end 1/1 @50 c #3 span=3 outer\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "begin 1/1 @50 c #4 span=3 parent=1 flow=F1 continued | parent=1\n"
		       "end 1/1 @60 c #4 span=3 normal\n"
		       "lost=1\n"
		       "reordered=1\n",
	},
	{
		.name = "gap_leaves_doubt",
		.script = "begin a; begin b; skip 1; begin c; finish;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=1\n"
		       "begin 1/1 @30 c #3 span=3 parent=2\n"
		       "end 1/1 @40 c #3 span=3 detach\n"
		       "end 1/1 @40 b #2 span=2 detach doubt\n"
		       "end 1/1 @40 a #1 span=1 detach doubt\n"
		       "gone 1/1\n"
		       "gone 1 detach\n"
		       "lost=1\n",
	},
	{
		.name = "gap_leaves_doubt_at_death",
		.script = "begin a; skip 1; end a; begin a; skip 1; begin b; begin c; skip 1; end b; texit; "
			  "pexit 9;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "begin 1/1 @30 a #2 span=2\n"
		       "lost 1/1 @40 n=1\n"
		       "begin 1/1 @40 b #3 span=3 parent=2\n"
		       "begin 1/1 @50 c #4 span=4 parent=3\n"
		       "lost 1/1 @60 n=1\n"
		       "end 1/1 @60 c #4 span=4 lost\n"
		       "end 1/1 @60 b #3 span=3 normal\n"
		       "end 1/1 @70 a #2 span=2 process status=9 doubt\n"
		       "gone 1/1\n"
		       "gone 1 process status=9\n"
		       "lost=3\n"
		       "lostends=1\n",
	},
	{
		.name = "gap_leaves_doubt_of_keys",
		.script = "new K 7 1; thread 1 2; event tick 1; skip 1; new K 8 2; thread 1 1; event tick 2; "
			  "finish;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @20 tick i=1\n"
		       "lost 1/2 @30 n=1\n"
		       "kbegin 1 @30 K #2 span=2 n=2\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @40 tick i=2\n"
		       "kend 1 @50 K #1 span=1 detach doubt\n"
		       "kend 1 @50 K #2 span=2 detach\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 detach\n"
		       "lost=1\n",
	},
	{
		.name = "gap_before_does_not_matter",
		.script = "begin a; skip 1; end a; begin a; begin b; end a; end b;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "begin 1/1 @30 a #2 span=2\n"
		       "begin 1/1 @40 b #3 span=3 parent=2\n"
		       "end 1/1 @50 b #3 span=3 outer\n"
		       "end 1/1 @50 a #2 span=2 normal\n"
		       "begin 1/1 @50 b #4 span=3 parent=2 flow=F1 continued | parent=2\n"
		       "end 1/1 @60 b #4 span=3 normal\n"
		       "lost=1\n"
		       "reordered=1\n",
	},
	{
		.name = "gap_of_other_thread_does_not_matter",
		.script = "begin a; begin b; thread 1 2; event tick 1; skip 1; event tick 2; thread 1 1; "
			  "end a; end b;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @30 tick i=1\n"
		       "lost 1/2 @40 n=1\n"
		       "instant 1/2 @40 tick i=2\n"
		       "end 1/1 @50 b #2 span=2 outer\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "begin 1/1 @50 b #3 span=2 parent=1 flow=F1 continued | parent=1\n"
		       "end 1/1 @60 b #3 span=2 normal\n"
		       "lost=1\n"
		       "reordered=1\n",
	},
	{
		.name = "attach_midlife",
		.script = "setseq 7; end a; begin b; end b; event tick 1 parent=77; exit B 3; enter A 77; "
			  "exit A 77;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "lost 1/1 @10 n=7\n"
		       "begin 1/1 @20 b #1 span=1\n"
		       "end 1/1 @30 b #1 span=1 normal\n"
		       "instant 1/1 @40 tick parent=2 i=1 | parent=2\n"
		       "begin 1/1 @60 A #2 span=2 flow=F1 unseen | span=2 fields=\"not seen\"\n"
		       "end 1/1 @70 A #2 span=2 normal\n"
		       "lost=7\n"
		       "unseen=1\n"
		       "stray=2\n",
	},
	{
		.name = "seq_not_back",
		.script = "begin a; setseq 0; end a; setseq 2; event tick 1;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "lost 1/1 @30 n=1\n"
		       "instant 1/1 @30 tick i=1\n"
		       "lost=1\n",
	},
	{
		.name = "detach_reattach",
		.script = "new A 5; enter A 5; detach; setseq 0; exit A 5; enter A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @30 A #1 span=1 detach\n"
		       "gone 1/1\n"
		       "gone 1 detach\n"
		       "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @50 A #2 span=2 flow=F2 unseen | span=2 fields=\"not seen\"\n"
		       "end 1/1 @60 A #2 span=2 normal\n"
		       "unseen=1\n"
		       "stray=1\n",
	},
	{
		.name = "fork_child",
		.script = "process 1 1000 7 42 app app-x; execid execution_id run1; begin a; fork 9 9000; "
			  "end a; thread 9 9; comm app; end a; begin b; end b; pexit 0;",
		.log = "process 1 name=app ppid=7 uid=42 cmdline=app-x exec=run1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 a #1 span=1\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "process 9 name=app ppid=1 uid=42 cmdline=app-x exec=run1\n"
		       "thread 9/9 name=app\n"
		       "begin 9/9 @80 b #2 span=2\n"
		       "end 9/9 @90 b #2 span=2 normal\n"
		       "gone 9/9\n"
		       "gone 9 process\n"
		       "stray=1\n",
	},
	{
		.name = "fork_child_unused",
		.script = "fork 9 9000; thread 9 9; pexit 0;",
		.log = "",
	},
	{
		.name = "explicit_parent",
		.script = "new A 5; begin a; new B 6 parent=5; enter B 6; exit B 6; event tick 1 parent=5; "
			  "event tick 2; end a;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=2\n"
		       "new 1 @30 span=3 parent=1\n"
		       "begin 1/1 @40 B #2 span=3 parent=1 flow=F1 | span=3 parent=1\n"
		       "end 1/1 @50 B #2 span=3 normal\n"
		       "instant 1/1 @60 tick parent=1 i=1 | parent=1\n"
		       "instant 1/1 @70 tick parent=2 i=2\n"
		       "end 1/1 @80 a #1 span=2 normal\n",
	},
	{
		.name = "explicit_root",
		.script = "begin a; new A 5 root; enter A 5; event tick 1 root; event tick 2; exit A 5; "
			  "end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "new 1 @20 span=2\n"
		       "begin 1/1 @30 A #2 span=2 flow=F1 | span=2 parent=0\n"
		       "instant 1/1 @40 tick i=1 | parent=0\n"
		       "instant 1/1 @50 tick parent=2 i=2\n"
		       "end 1/1 @60 A #2 span=2 normal\n"
		       "end 1/1 @70 a #1 span=1 normal\n",
	},
	{
		.name = "explicit_parent_is_innermost",
		.script = "new A 5; enter A 5; new B 6 parent=5; enter B 6; exit B 6; "
			  "event tick 1 parent=5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "new 1 @30 span=2 parent=1\n"
		       "begin 1/1 @40 B #2 span=2 parent=1 flow=F2 | span=2\n"
		       "end 1/1 @50 B #2 span=2 normal\n"
		       "instant 1/1 @60 tick parent=1 i=1\n"
		       "end 1/1 @70 A #1 span=1 normal\n",
	},
	{
		.name = "explicit_parent_seen_later",
		.script = "new B 6 parent=5; enter B 6; exit B 6; enter A 5 late; exit A 5; close A 5; "
			  "new A 8 parent=9; new B 9; enter B 9; exit B 9;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=2 parent=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 B #1 span=2 parent=1 flow=F1 | span=2 parent=1\n"
		       "end 1/1 @30 B #1 span=2 normal\n"
		       "begin 1/1 @40 A #2 span=1 flow=F2 unseen | span=1 fields=\"not seen\"\n"
		       "end 1/1 @50 A #2 span=1 normal\n"
		       "close 1 @60 span=1\n"
		       "new 1 @70 span=4 parent=3\n"
		       "new 1 @80 span=3\n"
		       "begin 1/1 @90 B #3 span=3 flow=F3 | span=3\n"
		       "end 1/1 @100 B #3 span=3 normal\n",
	},
	{
		.name = "parent_only_named_is_no_news",
		.script = "begin a; event tick 1 parent=5; close A 5; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "instant 1/1 @20 tick parent=2 i=1 | parent=2\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "stray=1\n",
	},
	{
		.name = "parent_of_itself_and_zero",
		.script = "new A 5 parent=5; enter A 5; exit A 5; new B 6 parent=0; enter B 6; exit B 6;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @30 A #1 span=1 normal\n"
		       "new 1 @40 span=2\n"
		       "begin 1/1 @50 B #2 span=2 flow=F2 | span=2\n"
		       "end 1/1 @60 B #2 span=2 normal\n",
	},
	{
		.name = "context_is_the_creating_thread",
		.script = "thread 1 2; begin b; thread 1 1; begin a; new A 5; thread 1 2; enter A 5; "
			  "exit A 5;",
		.log = "process 1 name=\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @10 b #1 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #2 span=2\n"
		       "new 1 @30 span=3 parent=2\n"
		       "begin 1/2 @40 A #3 span=3 parent=2 flow=F1 | span=3 parent=2\n"
		       "end 1/2 @50 A #3 span=3 normal\n",
	},
	{
		.name = "recording_is_root",
		.script = "begin a; new recording 5 actor 64; enter recording 5; event tick 1; "
			  "exit recording 5; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "new 1 @20 span=2 subject=\"actor\" capacity=64\n"
		       "begin 1/1 @30 recording #2 span=2 flow=F1 subject=\"actor\" capacity=64 | span=2 "
		       "parent=0\n"
		       "instant 1/1 @40 tick parent=2 i=1\n"
		       "end 1/1 @50 recording #2 span=2 normal\n"
		       "end 1/1 @60 a #1 span=1 normal\n",
	},
	{
		.name = "recorded_fields",
		.script = "new A 5; enter A 5; record rec 5 h1 3; exit A 5; enter A 5; record rec2 5 4; "
			  "record rec2 5 5; exit A 5; enter A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @40 A #1 span=1 normal | host=\"h1\" rank=3\n"
		       "begin 1/1 @50 A #2 span=1 flow=F1 reentered | span=1 host=\"h1\" rank=3\n"
		       "end 1/1 @80 A #2 span=1 normal | rank=5\n"
		       "begin 1/1 @90 A #3 span=1 flow=F1 reentered | span=1 host=\"h1\" rank=5\n"
		       "end 1/1 @100 A #3 span=1 normal\n",
	},
	{
		.name = "recorded_before_enter",
		.script = "new A 5; record rec 5 h1 3; enter A 5; exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 A #1 span=1 flow=F1 | span=1 host=\"h1\" rank=3\n"
		       "end 1/1 @40 A #1 span=1 normal\n",
	},
	{
		.name = "cut_flags",
		.script = "new Q 5 sel+100 1; enter Q 5; exit Q 5; begin ai 1 cutfields; end ai; "
			  "event message mes+9;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1 sql=\"sel\"+100 rows=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 Q #1 span=1 flow=F1 cut sql=\"sel\"+100 rows=1 | span=1\n"
		       "end 1/1 @30 Q #1 span=1 normal\n"
		       "begin 1/1 @40 ai #2 span=2 cut i=1\n"
		       "end 1/1 @50 ai #2 span=2 normal\n"
		       "instant 1/1 @60 mes cut message=\"mes\"+9\n",
	},
	{
		.name = "ids_are_per_process",
		.script = "new A 5; enter A 5; thread 2 2; new B 5; enter B 5; exit B 5; thread 1 1; "
			  "exit A 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "process 2 name=\n"
		       "new 2 @30 span=2\n"
		       "thread 2/2 name=\n"
		       "begin 2/2 @40 B #2 span=2 flow=F2 | span=2\n"
		       "end 2/2 @50 B #2 span=2 normal\n"
		       "end 1/1 @60 A #1 span=1 normal\n",
	},
	{
		.name = "id_again",
		.script = "new A 5; enter A 5; new B 5; exit A 5; new B 5; enter B 5; exit B 5;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @40 A #1 span=1 normal\n"
		       "close 1 @50 span=1\n"
		       "new 1 @50 span=2\n"
		       "begin 1/1 @60 B #2 span=2 flow=F2 | span=2\n"
		       "end 1/1 @70 B #2 span=2 normal\n",
	},
	{
		.name = "thread_exit",
		.script = "new A 5; enter A 5; begin b; at 100; texit; at 200000101; thread 1 2; "
			  "event tick 1; thread 1 1 5000; begin a; end a;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "begin 1/1 @30 b #2 span=2 parent=1\n"
		       "end 1/1 @100 b #2 span=2 thread\n"
		       "end 1/1 @100 A #1 span=1 thread\n"
		       "gone 1/1\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @200000101 tick i=1\n"
		       "gone 1/2\n"
		       "gone 1 thread\n"
		       "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @200000111 a #3 span=3\n"
		       "end 1/1 @200000121 a #3 span=3 normal\n",
	},
	{
		.name = "thread_exit_closed_soon",
		.script = "begin a; end a; texit; thread 1 2; event tick 1;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "gone 1/1\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @40 tick i=1\n",
	},
	{
		.name = "thread_exit_trailing_loss",
		.script = "begin a; end a; skip 4; texit; thread 1 2; skip 2; texit; thread 1 3; texit;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "lost 1/1 @30 n=4\n"
		       "gone 1/1\n"
		       "thread 1/2 name=\n"
		       "lost 1/2 @40 n=2\n"
		       "gone 1/2\n"
		       "lost=6\n",
	},
	{
		.name = "die_mid_span",
		.script = "begin a; thread 1 2; begin b; texit; thread 1 1; texit; pexit 11;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @20 b #2 span=2\n"
		       "end 1/1 @40 a #1 span=1 process status=11\n"
		       "end 1/2 @30 b #2 span=2 process status=11\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 process status=11\n",
	},
	{
		.name = "process_exit_all_threads",
		.script = "new A 5; enter A 5; thread 1 2; at 100; begin b; thread 2 1; begin c; "
			  "thread 1 1; at 90; pexit 256; thread 2 1; end c;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @100 b #2 span=2\n"
		       "process 2 name=\n"
		       "thread 2/1 name=\n"
		       "begin 2/1 @110 c #3 span=3\n"
		       "end 1/1 @90 A #1 span=1 process status=256\n"
		       "end 1/2 @100 b #2 span=2 process status=256\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 process status=256\n"
		       "end 2/1 @110 c #3 span=3 normal\n"
		       "timeback=1\n",
	},
	{
		.name = "thread_exit_then_detach",
		.script = "begin a; texit; thread 1 2; begin b; detach;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @30 b #2 span=2\n"
		       "end 1/1 @20 a #1 span=1 thread\n"
		       "end 1/2 @40 b #2 span=2 detach\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 detach\n",
	},
	{
		.name = "self_exec",
		.script = "process 1 1000 7 42 app app-x; pname process_name long; "
			  "tname thread_name longer; new A 5; enter A 5; thread 1 2; begin b; texit; "
			  "thread 1 1; exec sh 1000; begin a; comm x; end a; exit A 5;",
		.log = "process 1 name=long ppid=7 uid=42 cmdline=app-x\n"
		       "new 1 @40 span=1\n"
		       "thread 1/1 name=longer\n"
		       "begin 1/1 @50 A #1 span=1 flow=F1 | span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @60 b #2 span=2\n"
		       "end 1/1 @80 A #1 span=1 exec\n"
		       "end 1/2 @70 b #2 span=2 exec\n"
		       "gone 1/2\n"
		       "close 1 @80 span=1\n"
		       "thread 1/1 name=sh\n"
		       "process 1 name=sh ppid=7 uid=42 cmdline=app-x\n"
		       "begin 1/1 @90 a #3 span=3\n"
		       "thread 1/1 name=x\n"
		       "end 1/1 @110 a #3 span=3 normal\n"
		       "stray=1\n",
	},
	{
		.name = "exec_from_other_thread",
		.script = "thread 1 2; begin b; end b; thread 1 1; begin a; texit; exec sh 1000; setseq 2; "
			  "event tick 1; event tick 2;",
		.log = "process 1 name=\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @10 b #1 span=1\n"
		       "end 1/2 @20 b #1 span=1 normal\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 a #2 span=2\n"
		       "end 1/1 @40 a #2 span=2 exec\n"
		       "gone 1/2\n"
		       "gone 1/1\n"
		       "process 1 name=sh\n"
		       "thread 1/1 name=sh\n"
		       "instant 1/1 @60 tick i=1\n"
		       "instant 1/1 @70 tick i=2\n",
	},
	{
		.name = "exec_from_one_of_many",
		.script = "thread 1 2; event tick 1; thread 1 3; event tick 2; event tick 3; thread 1 1; "
			  "exec sh 1000; setseq 2; event tick 4; setseq 4; event tick 5;",
		.log = "process 1 name=\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @10 tick i=1\n"
		       "thread 1/3 name=\n"
		       "instant 1/3 @20 tick i=2\n"
		       "instant 1/3 @30 tick i=3\n"
		       "gone 1/2\n"
		       "gone 1/3\n"
		       "process 1 name=sh\n"
		       "thread 1/1 name=sh\n"
		       "instant 1/1 @50 tick i=4\n"
		       "lost 1/1 @60 n=1\n"
		       "instant 1/1 @60 tick i=5\n"
		       "lost=1\n",
	},
	{
		.name = "exec_with_the_first_thread_left",
		.script = "event tick 1; thread 1 2; event tick 2; event tick 3; thread 1 1; exec sh 1000; "
			  "setseq 2; event tick 4; skip 1; event tick 5;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 tick i=1\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @20 tick i=2\n"
		       "instant 1/2 @30 tick i=3\n"
		       "gone 1/2\n"
		       "thread 1/1 name=sh\n"
		       "process 1 name=sh\n"
		       "instant 1/1 @50 tick i=4\n"
		       "lost 1/1 @60 n=1\n"
		       "instant 1/1 @60 tick i=5\n"
		       "lost=1\n",
	},
	{
		.name = "tid_reuse",
		.script = "thread 1 5 100; begin a; thread 1 5 200; begin b; end b;",
		.log = "process 1 name=\n"
		       "thread 1/5 name=\n"
		       "begin 1/5 @10 a #1 span=1\n"
		       "end 1/5 @20 a #1 span=1 thread\n"
		       "gone 1/5\n"
		       "thread 1/5 name=\n"
		       "begin 1/5 @20 b #2 span=2\n"
		       "end 1/5 @30 b #2 span=2 normal\n",
	},
	{
		.name = "pid_reuse",
		.script = "begin a; thread 1 2; begin b; thread 1 1 5000; begin c; end c;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @20 b #2 span=2\n"
		       "end 1/1 @30 a #1 span=1 thread\n"
		       "end 1/2 @30 b #2 span=2 thread\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 thread\n"
		       "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 c #3 span=3\n"
		       "end 1/1 @40 c #3 span=3 normal\n",
	},
	{
		.name = "pid_reuse_told",
		.script = "process 1 1000 7 42 app; begin a; process 1 5000 7 42 app; thread 1 1 5000; "
			  "begin b; end b;",
		.log = "process 1 name=app ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=1\n"
		       "end 1/1 @30 a #1 span=1 thread\n"
		       "gone 1/1\n"
		       "gone 1 thread\n"
		       "process 1 name=app ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @40 b #2 span=2\n"
		       "end 1/1 @50 b #2 span=2 normal\n",
	},
	{
		.name = "start_in_ticks_is_the_same",
		.script = "process 1 30000000 7 42 app; thread 1 1 30001234; begin a; "
			  "process 1 30000000 7 42 app2; end a; process 1 40000000 7 42 app;",
		.log = "process 1 name=app ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=1\n"
		       "process 1 name=app2 ppid=7 uid=42\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "gone 1/1\n"
		       "gone 1 thread\n",
	},
	{
		.name = "time_back",
		.script = "at 100; begin a; at 50; event tick 1; at 60; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @100 a #1 span=1\n"
		       "instant 1/1 @100 tick parent=1 i=1\n"
		       "end 1/1 @100 a #1 span=1 normal\n"
		       "timeback=2\n",
	},
	{
		.name = "counters",
		.script = "counter depth -5; counter flag 1; counter text x; counter depth;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "counter 1/1 @10 depth=-5\n"
		       "counter 1/1 @20 flag=1\n",
	},
	{
		.name = "counters_by_template",
		.script = "counter used 5 eden; counter used -6 old; counter used 7;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "counter 1/1 @10 eden used=5\n"
		       "counter 1/1 @20 old used=-6\n"
		       "counter 1/1 @30  used=7\n",
	},
	{
		.name = "too_deep",
		.script = "begin a; begin b; begin ai 1; begin a; end a; end ai; end b; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "end 1/1 @70 b #2 span=2 normal\n"
		       "end 1/1 @80 a #1 span=1 normal\n"
		       "deep=2\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "too_deep_not_lifo",
		.script = "begin a; begin b; begin c; end a; end c; end b; begin c; end c;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "end 1/1 @40 b #2 span=2 outer\n"
		       "end 1/1 @40 a #1 span=1 normal\n"
		       "begin 1/1 @40 b #3 span=2 parent=1 flow=F1 continued | parent=1\n"
		       "end 1/1 @60 b #3 span=2 normal\n"
		       "begin 1/1 @70 c #4 span=3\n"
		       "end 1/1 @80 c #4 span=3 normal\n"
		       "reordered=1\n"
		       "deep=1\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "too_deep_span",
		.script = "new A 5; begin a; enter A 5; event tick 1; exit A 5; enter A 5; close A 5; "
			  "end a;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=2\n"
		       "instant 1/1 @40 tick parent=2 i=1\n"
		       "close 1 @70 span=1\n"
		       "end 1/1 @80 a #1 span=2 normal\n"
		       "closed=1\n"
		       "deep=2\n",
		.opts = {.max_depth = 1},
	},
	{
		.name = "too_deep_gap",
		.script = "begin a; begin b; begin c; begin c; skip 1; end b; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "lost 1/1 @50 n=1\n"
		       "end 1/1 @50 b #2 span=2 normal\n"
		       "end 1/1 @60 a #1 span=1 normal\n"
		       "lost=1\n"
		       "deep=2\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "too_deep_gap_in_hidden",
		.script = "begin a; begin b; begin c; skip 1; end b; end c; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @40 n=1\n"
		       "end 1/1 @60 a #1 span=1 normal\n"
		       "lost=1\n"
		       "stray=1\n"
		       "deep=2\n",
		.opts = {.max_depth = 1},
	},
	{
		.name = "too_deep_stays_inside",
		.script = "begin a; begin b; begin c; end b; begin ai 1; end ai; end c; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "end 1/1 @40 b #2 span=2 normal\n"
		       "end 1/1 @80 a #1 span=1 normal\n"
		       "deep=2\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "lost_ends_do_not_fill_the_stack",
		.script = "begin a; skip 1; begin a; skip 1; begin b; end b; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=1\n"
		       "begin 1/1 @20 a #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=1\n"
		       "end 1/1 @30 a #2 span=2 lost\n"
		       "end 1/1 @30 a #1 span=1 lost\n"
		       "begin 1/1 @30 b #3 span=3\n"
		       "end 1/1 @40 b #3 span=3 normal\n"
		       "lost=2\n"
		       "stray=1\n"
		       "lostends=2\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "lost_ends_spare_what_began_after",
		.script = "begin a; skip 1; begin b; begin c; end c; end b; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "end 1/1 @30 b #2 span=2 outer\n"
		       "end 1/1 @30 a #1 span=1 lost\n"
		       "begin 1/1 @30 b #3 span=2 parent=1 flow=F1 continued | parent=1\n"
		       "begin 1/1 @30 c #4 span=3 parent=2\n"
		       "end 1/1 @40 c #4 span=3 normal\n"
		       "end 1/1 @50 b #3 span=2 normal\n"
		       "lost=1\n"
		       "stray=1\n"
		       "lostends=1\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "span_table_bound",
		.script = "new A 5; new B 6; enter B 6; new C 7; enter A 5; exit A 5; exit B 6;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "new 1 @20 span=2\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 B #1 span=2 flow=F1 | span=2\n"
		       "close 1 @40 span=1\n"
		       "new 1 @40 span=3 parent=2\n"
		       "close 1 @50 span=3\n"
		       "begin 1/1 @50 A #2 span=4 flow=F2 unseen | span=4 parent=0 fields=\"not seen\"\n"
		       "end 1/1 @60 A #2 span=4 normal\n"
		       "end 1/1 @70 B #1 span=2 normal\n"
		       "unseen=1\n"
		       "forgotten=2\n",
		.opts = {.max_spans = 2},
	},
	{
		.name = "span_table_bound_all_entered",
		.script = "new A 5; enter A 5; new B 6; enter B 6; exit A 5; new B 6; enter B 6; exit B 6;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @50 A #1 span=1 normal\n"
		       "close 1 @60 span=1\n"
		       "new 1 @60 span=2\n"
		       "begin 1/1 @70 B #2 span=2 flow=F2 | span=2\n"
		       "end 1/1 @80 B #2 span=2 normal\n"
		       "unseen=1\n"
		       "forgotten=3\n",
		.opts = {.max_spans = 1},
	},
	{
		.name = "thread_table_bound",
		.script = "begin a; thread 1 2; begin b; end b; thread 2 1; begin c; thread 1 1; end a;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1 @20 n=1 too many threads\n"
		       "lost 1 @30 n=1 too many threads\n"
		       "lost @40 n=1 too many threads\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "lost=3\n",
		.opts = {.max_threads = 1},
	},
	{
		.name = "lost_total",
		.script = "begin a; skip 2; end a; losttotal 2; losttotal 5; losttotal 5; losttotal 6;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=2\n"
		       "end 1/1 @20 a #1 span=1 normal\n"
		       "lost @30 n=3 ring full\n"
		       "lost @30 n=1 ring full\n"
		       "lost=2\n",
	},
	{
		.name = "open_slices",
		.script = "begin a; new A 5; enter A 5; begin c; end a; show; thread 1 2; begin b; show; "
			  "texit; show; finish; show;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "new 1 @20 span=2 parent=1\n"
		       "begin 1/1 @30 A #2 span=2 parent=1 flow=F1 | span=2\n"
		       "begin 1/1 @40 c #3 span=3 parent=2\n"
		       "end 1/1 @50 c #3 span=3 outer\n"
		       "end 1/1 @50 A #2 span=2 outer\n"
		       "end 1/1 @50 a #1 span=1 normal\n"
		       "begin 1/1 @50 A #4 span=2 parent=1 flow=F1 reentered,continued | span=2 parent=1\n"
		       "begin 1/1 @50 c #5 span=3 parent=2 flow=F2 continued\n"
		       "thread 1/2 name=\n"
		       "begin 1/2 @60 b #6 span=4\n"
		       "end 1/1 @80 c #5 span=3 detach\n"
		       "end 1/1 @80 A #4 span=2 detach\n"
		       "end 1/2 @70 b #6 span=4 thread\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 detach\n"
		       "open 1/1 1 c span=3 parent=2 since=40\n"
		       "open 1/1 0 A span=2 parent=1 since=30\n"
		       "open 1/1 1 c span=3 parent=2 since=40\n"
		       "open 1/1 0 A span=2 parent=1 since=30\n"
		       "open 1/2 0 b span=4 parent=0 since=60\n"
		       "open 1/1 1 c span=3 parent=2 since=40\n"
		       "open 1/1 0 A span=2 parent=1 since=30\n"
		       "reordered=1\n",
	},
	{
		.name = "lost_ends_reparent",
		.script = "begin a; skip 1; begin b; skip 1; begin c; event tick 1;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "lost 1/1 @20 n=1\n"
		       "begin 1/1 @20 b #2 span=2 parent=1\n"
		       "lost 1/1 @30 n=1\n"
		       "end 1/1 @30 b #2 span=2 lost\n"
		       "end 1/1 @30 a #1 span=1 lost\n"
		       "begin 1/1 @30 c #3 span=3\n"
		       "instant 1/1 @40 tick parent=3 i=1\n"
		       "lost=2\n"
		       "lostends=2\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "restart",
		.script = "process 1 1000 7 42 app; begin ai 1; new Q 5 x 1; enter Q 5; thread 1 2; "
			  "event tick 1; thread 2 2; begin b; restart; thread 1 1; exit Q 5; end ai; "
			  "close Q 5; thread 1 2; event tick 2; thread 2 2; end b;",
		.log = "process 1 name=app ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 ai #1 span=1 i=1\n"
		       "new 1 @30 span=2 parent=1 sql=\"x\" rows=1\n"
		       "begin 1/1 @40 Q #2 span=2 parent=1 flow=F1 sql=\"x\" rows=1 | span=2\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @50 tick i=1\n"
		       "process 2 name=\n"
		       "thread 2/2 name=\n"
		       "begin 2/2 @60 b #3 span=3\n"
		       "end 1/1 @70 Q #2 span=2 part\n"
		       "end 1/1 @70 ai #1 span=1 part\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 part\n"
		       "end 2/2 @70 b #3 span=3 part\n"
		       "gone 2/2\n"
		       "gone 2 part\n"
		       "process 1 name=app ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @70 ai #4 span=1 flow=F2 continued\n"
		       "begin 1/1 @70 Q #5 span=2 parent=1 flow=F1 reentered,continued sql=\"x\" rows=1 | "
		       "span=2\n"
		       "process 2 name=\n"
		       "thread 2/2 name=\n"
		       "begin 2/2 @70 b #6 span=3 flow=F3 continued\n"
		       "end 1/1 @70 Q #5 span=2 normal\n"
		       "end 1/1 @80 ai #4 span=1 normal\n"
		       "close 1 @90 span=2\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @100 tick i=2\n"
		       "end 2/2 @110 b #6 span=3 normal\n",
	},
	{
		.name = "restart_dying",
		.script = "begin a; texit; restart; thread 1 2; event tick 1; pexit 9;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "end 1/1 @30 a #1 span=1 part\n"
		       "gone 1/1\n"
		       "gone 1 part\n"
		       "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 a #2 span=1 flow=F1 continued\n"
		       "thread 1/2 name=\n"
		       "instant 1/2 @30 tick i=1\n"
		       "end 1/1 @30 a #2 span=1 process status=9\n"
		       "gone 1/1\n"
		       "gone 1/2\n"
		       "gone 1 process status=9\n",
	},
	{
		/* nothing is open, and nothing more happens: its end and those of its spans are told all the same */
		.name = "restart_idle",
		.script = "new A 5; new A 6; enter A 5; exit A 5; restart; restart; close A 5; pexit 9; "
			  "process 1 2000 7 42 next; thread 1 1 2000; event tick 1;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "new 1 @20 span=2\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @30 A #1 span=1 flow=F1 | span=1\n"
		       "end 1/1 @40 A #1 span=1 normal\n"
		       "gone 1/1\n"
		       "gone 1 part\n"
		       "close 1 @50 span=1\n"
		       "gone 1 process status=9\n"
		       "process 1 name=next ppid=7 uid=42\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @80 tick i=1\n",
	},
	{
		/* the parts of a trace agree on who a process and a thread is */
		.name = "restart_start_known_later",
		.script = "thread 1 1 0; event tick 1; restart; process 1 1000 0 0 app; thread 1 1 1000; "
			  "event tick 2;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @10 tick i=1\n"
		       "gone 1/1\n"
		       "gone 1 part\n"
		       "process 1 name=app\n"
		       "thread 1/1 name=\n"
		       "instant 1/1 @30 tick i=2\n",
	},
	{
		.name = "span_told_with_parent",
		.script = "new A 5; begin a; new Q 6 parent=5 x 1; close Q 6; close A 5; new B 7; exec sh; "
			  "new B 8; pexit 11;",
		.log = "process 1 name=\n"
		       "new 1 @10 span=1\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @20 a #1 span=2\n"
		       "new 1 @30 span=3 parent=1 sql=\"x\" rows=1\n"
		       "close 1 @40 span=3\n"
		       "close 1 @50 span=1\n"
		       "new 1 @60 span=4 parent=2\n"
		       "end 1/1 @70 a #1 span=2 exec\n"
		       "close 1 @70 span=4\n"
		       "thread 1/1 name=sh\n"
		       "process 1 name=sh\n"
		       "new 1 @80 span=5\n"
		       "gone 1/1\n"
		       "gone 1 process status=11\n",
	},
	{
		.name = "hits_without_site",
		.script = "begin -; event -; new - 5; end -;",
		.log = "stray=1\n",
	},
	{
		/* a begin whose end never comes, ends out of order, one that nothing began */
		.name = "end_says_which",
		.script = "begin m F 1 7; begin m raise 2 7; end m 7 F 5; begin m F 3 7; begin m F 4 8; "
			  "end m 7 F 6; end m 7 G 0; end m 9 F 0; end m 8 F 1;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 m #1 span=1 f=\"F\" x=1 g=7\n"
		       "begin 1/1 @20 m #2 span=2 parent=1 f=\"raise\" x=2 g=7\n"
		       "end 1/1 @30 m #2 span=2 outer\n"
		       "end 1/1 @30 m #1 span=1 normal | ret=5\n"
		       "begin 1/1 @30 m #3 span=2 parent=1 flow=F1 continued | parent=1\n"
		       "begin 1/1 @40 m #4 span=3 parent=2 f=\"F\" x=3 g=7\n"
		       "begin 1/1 @50 m #5 span=4 parent=3 f=\"F\" x=4 g=8\n"
		       "end 1/1 @60 m #5 span=4 outer\n"
		       "end 1/1 @60 m #4 span=3 normal | ret=6\n"
		       "begin 1/1 @60 m #6 span=4 parent=3 flow=F2 continued | parent=3\n"
		       "end 1/1 @90 m #6 span=4 normal | ret=1\n"
		       "stray=2\n"
		       "reordered=2\n",
	},
	{
		.name = "end_says_which_missing",
		.script = "begin m abcdefgh 1 7; begin m abcdefghi 1 7; end m ?; end m 7 abcdefgh 3;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 m #1 span=1 f=\"abcdefgh\" x=1 g=7\n"
		       "begin 1/1 @20 m #2 span=2 parent=1 f=\"abcdefghi\" x=1 g=7\n"
		       "end 1/1 @30 m #2 span=2 normal\n"
		       "end 1/1 @40 m #1 span=1 normal | ret=3\n",
	},
	{
		.name = "end_says_which_hidden",
		.script = "begin m a 1 1; begin m b 1 1; begin m c 1 1; begin m d 1 1; end m 1 c 0; end m 1 "
			  "b 0; end m 1 d "
			  "0; end m 1 a 0;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 m #1 span=1 f=\"a\" x=1 g=1\n"
		       "begin 1/1 @20 m #2 span=2 parent=1 f=\"b\" x=1 g=1\n"
		       "end 1/1 @60 m #2 span=2 normal | ret=0\n"
		       "end 1/1 @80 m #1 span=1 normal | ret=0\n"
		       "deep=2\n",
		.opts = {.max_depth = 2},
	},
	{
		/* not left by an end of their own kind, for that says which it means; but by others */
		.name = "end_says_which_nested",
		.script = "begin a; begin n F; begin n G; end n F; begin b; begin n H; begin n I; end b; end "
			  "a; end n G; end n H;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 n #2 span=2 parent=1 f=\"F\"\n"
		       "begin 1/1 @30 n #3 span=3 parent=2 f=\"G\"\n"
		       "end 1/1 @40 n #3 span=3 outer\n"
		       "end 1/1 @40 n #2 span=2 normal\n"
		       "begin 1/1 @40 n #4 span=3 parent=2 flow=F1 continued | parent=2\n"
		       "begin 1/1 @50 b #5 span=4 parent=3\n"
		       "begin 1/1 @60 n #6 span=5 parent=4 f=\"H\"\n"
		       "begin 1/1 @70 n #7 span=6 parent=5 f=\"I\"\n"
		       "end 1/1 @80 n #7 span=6 left\n"
		       "end 1/1 @80 n #6 span=5 left\n"
		       "end 1/1 @80 b #5 span=4 normal\n"
		       "end 1/1 @90 n #4 span=3 left\n"
		       "end 1/1 @90 a #1 span=1 normal\n"
		       "stray=2\n"
		       "reordered=3\n",
	},
	{
		.name = "nested_hidden",
		.script = "begin a; begin n A; begin n B; begin n C; begin a; begin n D; end a; end n C; end "
			  "a; begin b; end b;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "begin 1/1 @20 n #2 span=2 parent=1 f=\"A\"\n"
		       "end 1/1 @90 n #2 span=2 left\n"
		       "end 1/1 @90 a #1 span=1 normal\n"
		       "begin 1/1 @100 b #3 span=3\n"
		       "end 1/1 @110 b #3 span=3 normal\n"
		       "reordered=1\n"
		       "deep=4\n",
		.opts = {.max_depth = 2},
	},
	{
		.name = "keyed_overlap",
		.script = "begin a; new K 7 1; new K 8 2; new L 9 /x; close K 7; end a; thread 1 2; close L "
			  "9 5; "
			  "close K 8;",
		.log = "process 1 name=\n"
		       "thread 1/1 name=\n"
		       "begin 1/1 @10 a #1 span=1\n"
		       "kbegin 1 @20 K #2 span=2 n=1\n"
		       "kbegin 1 @30 K #3 span=3 n=2\n"
		       "kbegin 1 @40 L /x #4 span=4 url=\"/x\"\n"
		       "kend 1 @50 K #2 span=2 normal\n"
		       "end 1/1 @60 a #1 span=1 normal\n"
		       "kend 1 @70 L /x #4 span=4 normal | begin_thread=1 end_thread=2 done=5\n"
		       "kend 1 @80 K #3 span=3 normal | begin_thread=1 end_thread=2\n",
	},
	{
		.name = "keyed_again",
		.script = "new K 7 1; thread 1 2; new K 7 2; close K 7; close K 7;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "kend 1 @20 K #1 span=1 again | begin_thread=1 end_thread=2\n"
		       "kbegin 1 @20 K #2 span=2 n=2\n"
		       "kend 1 @30 K #2 span=2 normal\n"
		       "stray=1\n"
		       "again=1\n",
	},
	{
		.name = "keyed_is_of_its_process",
		.script = "new K 7 1; thread 2 2; close K 7; new K 7 2; thread 1 1; close K 7;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "process 2 name=\n"
		       "kbegin 2 @30 K #2 span=2 n=2\n"
		       "kend 1 @40 K #1 span=1 normal\n"
		       "stray=1\n",
	},
	{
		.name = "keyed_limit",
		.script = "new K 5 1; new K 6 2; new K 7 3; close K 6; close K 5; new K 8 4; show;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "kbegin 1 @20 K #2 span=2 n=2\n"
		       "kend 1 @30 K #1 span=1 forgotten\n"
		       "kbegin 1 @30 K #3 span=3 n=3\n"
		       "kend 1 @40 K #2 span=2 normal\n"
		       "kbegin 1 @60 K #4 span=4 n=4\n"
		       "keyed 1 tid=1 0 of 2 K span=3 since=30\n"
		       "keyed 1 tid=1 1 of 2 K span=4 since=60\n"
		       "stray=1\n"
		       "keyedforgotten=1\n",
		.opts = {.max_keyed = 2},
	},
	{
		.name = "keyed_ends_with_process",
		.script = "thread 1 1; new K 7 1; thread 1 2; new K 8 1; texit; thread 1 1; exec sh; "
			  "new K 9 1; show; texit; pexit 9;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "kbegin 1 @20 K #2 span=2 n=1\n"
		       "kend 1 @40 K #1 span=1 exec\n"
		       "kend 1 @40 K #2 span=2 exec\n"
		       "process 1 name=sh\n"
		       "kbegin 1 @50 K #3 span=3 n=1\n"
		       "kend 1 @70 K #3 span=3 process status=9\n"
		       "gone 1 process status=9\n"
		       "keyed 1 tid=1 0 of 1 K span=3 since=50\n",
	},
	{
		.name = "keyed_loss_and_time",
		.script = "new K 7 1; skip 3; close K 7; thread 1 2; new K 8 1; at 20; thread 1 3; close K "
			  "8; finish;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 K #1 span=1 n=1\n"
		       "thread 1/1 name=\n"
		       "lost 1/1 @20 n=3\n"
		       "kend 1 @20 K #1 span=1 normal\n"
		       "kbegin 1 @30 K #2 span=2 n=1\n"
		       "kend 1 @30 K #2 span=2 normal | begin_thread=2 end_thread=3\n"
		       "gone 1/1\n"
		       "gone 1 detach\n"
		       "lost=3\n",
	},
	{
		.name = "keyed_restart",
		.script = "new L 7 /x; new K 8 1; restart; close L 7 5; finish;",
		.log = "process 1 name=\n"
		       "kbegin 1 @10 L /x #1 span=1 url=\"/x\"\n"
		       "kbegin 1 @20 K #2 span=2 n=1\n"
		       "kend 1 @30 L /x #1 span=1 part\n"
		       "kend 1 @30 K #2 span=2 part\n"
		       "gone 1 part\n"
		       "process 1 name=\n"
		       "kbegin 1 @30 L /x #3 span=1 flow=F1 continued url=\"/x\"\n"
		       "kbegin 1 @30 K #4 span=2 flow=F2 continued n=1\n"
		       "kend 1 @30 L /x #3 span=1 normal | done=5\n"
		       "kend 1 @40 K #4 span=2 detach\n"
		       "gone 1 detach\n",
	},
};
