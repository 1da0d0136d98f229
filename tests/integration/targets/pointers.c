/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes (provider `bad`) with arguments that mean harm. pointers MODE: prints `ready PID`, waits for a line, fires,
 * prints `NAME=hits` and `done`, waits for the end of input.
 *   pointers   one hit of `ptr` for each kind of pointer (number of the kind, pointer, memory there)
 *   lengths    one hit of `len` for each kind of length
 *   races      texts that another thread changes, and memory that it takes away
 *   uffd, fuse memory that somebody else would have to bring, and never does
 * ptr has the arguments -4@kind 8@pointer -4@(pointer).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRE(name, args, ...)                                                                        \
	__asm__ volatile("990: nop\n"                                                                \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                     \
			 ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"   \
			 "993: .8byte 990b,0,0\n.asciz \"bad\"\n.asciz \"" name "\"\n.asciz \"" args \
			 "\"\n994: .balign 4\n.popsection\n"                                         \
			 :                                                                           \
			 : __VA_ARGS__                                                               \
			 : "memory")

#define PAGE 4096ul

static int hits;

static void ptr(uint64_t p)
{
#if defined(__x86_64__)
	FIRE("ptr", "-4@%%eax 8@%%rbx -4@(%%rbx)", "a"(hits), "b"(p));
#else
	FIRE("ptr", "-4@%w0 8@%1 -4@[%1]", "r"(hits), "r"(p));
#endif
	hits++;
}

static char *pages(unsigned n, int prot)
{
	char *p = mmap(NULL, n * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A file of n pages in memory, full of 'f'. */
static int file(unsigned n)
{
	int fd = memfd_create("pointers", MFD_CLOEXEC);
	char page[PAGE];

	memset(page, 'f', sizeof(page));
	for (unsigned i = 0; i < n; i++)
		if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
			exit(1);
	return fd;
}

/* Lowest address of the stack's mapping. */
static uint64_t stack_start(void)
{
	unsigned long long at = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]"))
			at = strtoull(line, NULL, 16);
	if (f)
		fclose(f);
	return at;
}

static void pointers(void)
{
	char *hole = pages(3, PROT_READ | PROT_WRITE), *none = pages(1, PROT_NONE);
	int fd = file(2), fresh = file(1);
	char *cut = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	char *unread = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fresh, 0);
	char *guard = pages(1, PROT_READ | PROT_WRITE);
	uint64_t stack = stack_start();

	memset(hole, 'e', 2 * PAGE);
	munmap(hole + 2 * PAGE, PAGE);
	hole[2 * PAGE - 1] = 0;
	if (ftruncate(fd, (off_t)PAGE))
		exit(1);
	if (madvise(guard, PAGE, 102)) /* MADV_GUARD_INSTALL, Linux 6.13 */
		mprotect(guard, PAGE, PROT_NONE);
	ptr(0);
	ptr(8);
	ptr(0xffffffff81000000ul); /* the kernel's */
	ptr(0xffff888000000000ul);
	ptr(0x8000000000000000ul); /* nobody's */
	ptr(0x0000800000000000ul);
	ptr(0x00007ffffffffffful);
	ptr(~0ul);
	ptr(~0ul - 2);
	ptr(0xffffffffff600000ul); /* vsyscall */
	ptr((uintptr_t)hole + 2 * PAGE);
	ptr((uintptr_t)none);
	ptr((uintptr_t)guard);
	ptr((uintptr_t)cut + PAGE);          /* behind the file's end */
	ptr(stack - 64 * 1024);              /* the stack could grow to here */
	ptr((uintptr_t)hole + 2 * PAGE - 1); /* "" and 4 bytes that are not all there */
	ptr((uintptr_t)hole + 2 * PAGE - 4); /* "eee" */
	ptr((uintptr_t)pages(1, PROT_READ)); /* never touched: zeros */
	ptr((uintptr_t)unread);              /* never touched: the file's */
	ptr((uintptr_t)cut);
	printf("grown=%d\n", stack_start() != stack);
}

#if defined(__x86_64__) /* what arm64 has: operands.c */
/* Sizes are read to the last byte of a page, and no byte more. */
static void edges(void)
{
	unsigned char *e = (unsigned char *)pages(2, PROT_READ | PROT_WRITE) + PAGE;

	munmap(e, PAGE);
	for (int i = 1; i <= 8; i++)
		e[-i] = (unsigned char)(0x80 + i);
	FIRE("edge1", "1@-1(%%rax) -1@-1(%%rax) 1@(%%rax)", "a"(e));
	FIRE("edge2", "2@-2(%%rax) -2@-2(%%rax) 2@-1(%%rax)", "a"(e));
	FIRE("edge4", "4@-4(%%rax) -4@-4(%%rax) 4@-3(%%rax)", "a"(e));
	FIRE("edge8", "8@-8(%%rax) -8@-8(%%rax) 8@-7(%%rax)", "a"(e));
	FIRE("edgef", "4f@-4(%%rax) 8f@-8(%%rax) 8f@-4(%%rax)", "a"(e));
}

static void lengths(void)
{
	static char text[2000];

	memset(text, 'x', sizeof(text));
	FIRE("i8", "8@%%rax -1@%%bl", "a"(text), "b"(0xffL));
	FIRE("i8", "8@%%rax -1@%%bl", "a"(text), "b"(0x80L));
	FIRE("i8", "8@%%rax -1@%%bl", "a"(text), "b"(0x7fL));
	FIRE("u8", "8@%%rax 1@%%bh", "a"(text), "b"(0xff00L));
	FIRE("i16", "8@%%rax -2@%%bx", "a"(text), "b"(0xffffL));
	FIRE("i16", "8@%%rax -2@%%bx", "a"(text), "b"(0xffff0003L));
	FIRE("i32", "8@%%rax -4@%%ebx", "a"(text), "b"(0x80000000L));
	FIRE("i32", "8@%%rax -4@%%ebx", "a"(text), "b"(0x7fffffffL));
	FIRE("u32", "8@%%rax 4@%%ebx", "a"(text), "b"(0xffffffffL));
	FIRE("i64", "8@%%rax -8@%%rbx", "a"(text), "b"(INT64_MIN));
	FIRE("i64", "8@%%rax -8@%%rbx", "a"(text), "b"(INT64_MAX));
	FIRE("u64", "8@%%rax 8@%%rbx", "a"(text), "b"(1ul << 62));
	FIRE("mem", "8@%%rax 8@(%%rbx)", "a"(text), "b"(8L)); /* its length cannot be read */
	FIRE("imm", "8@%%rax -1@$-128", "a"(text));
	hits = 14;
}
#else
static void edges(void)
{
}

static void lengths(void)
{
}
#endif

#define RACE_HITS 20000

static char *shaky; /* two pages: a text that changes, then memory that comes and goes */
static bool stop;

static void *changer(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		memset(shaky, i & 1 ? 'a' : 'b', PAGE - 1 - i % 1500);
		shaky[PAGE - 1 - i % 1500] = 0;
	}
	return NULL;
}

static void *remover(void *unused)
{
	char *p = shaky + PAGE;

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		munmap(p, PAGE);
		if (mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    p)
			madvise(p, PAGE, MADV_DONTNEED);
	}
	return NULL;
}

static void races(void)
{
	pthread_t t[2];

	shaky = pages(2, PROT_READ | PROT_WRITE);
	pthread_create(&t[0], NULL, changer, NULL);
	pthread_create(&t[1], NULL, remover, NULL);
	for (int i = 0; i < RACE_HITS; i++)
#if defined(__x86_64__)
		FIRE("race", "8@%%rax 8@%%rbx -4@(%%rbx) -4@%%ecx", "a"(shaky + PAGE - 1600),
		     "b"(shaky + PAGE), "c"(i));
#else
		FIRE("race", "8@%0 8@%1 -4@[%1] -4@%w2", "r"(shaky + PAGE - 1600), "r"(shaky + PAGE), "r"(i));
#endif
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	hits = RACE_HITS;
}

static char *uffd_area(char *p)
{
	struct uffdio_register r = {.range = {(uintptr_t)p, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &r) ? p : NULL;
}

static void uffd(char *anon, char *shared)
{
	ptr((uintptr_t)anon);
	ptr((uintptr_t)anon - 2); /* begins before it */
	ptr((uintptr_t)shared);
}

/* A file system of one file (its root), which opens and maps, and is never read to an end. */
static int fuse_fd = -1;

static void answer(uint64_t unique, int error, const void *body, size_t len)
{
	struct fuse_out_header h = {(uint32_t)(sizeof(h) + len), error, unique};
	char buf[4096];

	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), body, len);
	if (write(fuse_fd, buf, h.len) < 0 && errno != ENOENT)
		fprintf(stderr, "fuse: %s\n", strerror(errno));
}

static void fuse_server(void)
{
	static char buf[1 << 18];
	struct fuse_in_header *in = (struct fuse_in_header *)buf;
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_attr_out attr = {
		.attr_valid = 1000, .attr = {.ino = 1, .size = 2 * PAGE, .mode = S_IFREG | 0444, .nlink = 1}};
	struct fuse_open_out open_out = {.fh = 1};

	while (read(fuse_fd, buf, sizeof(buf)) > 0) {
		switch (in->opcode) {
		case FUSE_INIT:
			answer(in->unique, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			answer(in->unique, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			answer(in->unique, 0, &open_out, sizeof(open_out));
			break;
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break; /* who waits for this waits long */
		default:
			answer(in->unique, -ENOSYS, "", 0);
		}
	}
}

/*
 * The mount is gone at once; the mapping stays. The server is a process, for only its end frees who waits for it in
 * vain: when the main process ends, or after a minute.
 */
static char *fuse_area(const char *at)
{
	char options[128], *p;
	int fd;

	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100444,user_id=0,group_id=0", fuse_fd);
	if (fuse_fd < 0 || (close(open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0) ||
	    mount("pointers", at, "fuse", MS_NOSUID | MS_NODEV, options))
		return NULL;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		close(0);
		close(1);
		fuse_server();
		_exit(0);
	}
	close(fuse_fd);
	fd = open(at, O_RDONLY | O_CLOEXEC);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd); /* it asks the server once more */
	umount2(at, MNT_DETACH);
	return p == MAP_FAILED ? NULL : p;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	char *anon = NULL, *other = NULL, *fuse = NULL, c;

	if (!strcmp(mode, "uffd")) {
		anon = pages(2, PROT_READ | PROT_WRITE);
		memset(anon, 'a', PAGE);
		anon = uffd_area(anon + PAGE);
		other = uffd_area(
			mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
		if (!anon || !other)
			return 77;
	}
	if (!strcmp(mode, "fuse") && argc > 2) {
		fuse = fuse_area(argv[2]);
		if (!fuse)
			return 77;
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &c, 1) == 1) {
		if (!strcmp(mode, "pointers"))
			pointers(), edges();
		else if (!strcmp(mode, "lengths"))
			lengths();
		else if (!strcmp(mode, "races"))
			races();
		else if (anon)
			uffd(anon, other);
		else if (fuse)
			ptr((uintptr_t)fuse);
	}
	printf("hits=%d\ndone\n", hits);
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
