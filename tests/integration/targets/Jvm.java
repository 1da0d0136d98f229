/* SPDX-License-Identifier: BSD-3-Clause */
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/* Does what HotSpot's probes tell of, in numbers that are certain, and says them. Arguments: kind, how many. */
public class Jvm {
    static class Monitor {}
    static class Thing { int v; Thing(int v) { this.v = v; } }
    static class Fault extends RuntimeException { Fault() { super("x", null, false, false); } }
    static class Bad { static int v = Integer.parseInt("no number"); }

    static final Monitor monitor = new Monitor();
    static int calls, threw;

    static void say(String k, Object v) { System.out.println(k + "=" + v); }

    static void threads(int n) throws Exception {
        for (int i = 0; i < n; i++) {
            Thread t = new Thread(() -> { calls++; }, "a thread of many letters, größer " + i);
            t.setDaemon(i % 2 == 1);
            t.start();
            say("thread " + t.getName() + " " + t.isDaemon(), t.getId());
            t.join();
        }
    }

    /* BLOCKED is behind the probe of entering, and the monitor is not given away before. */
    static void contend(int n) throws Exception {
        for (int i = 0; i < n; i++) {
            Thread t = new Thread(() -> { synchronized (monitor) { calls++; } }, "contender");
            synchronized (monitor) {
                t.start();
                while (t.getState() != Thread.State.BLOCKED)
                    Thread.yield();
            }
            t.join();
        }
    }

    static void waits(int n) throws Exception {
        synchronized (monitor) {
            for (int i = 0; i < n; i++)
                monitor.wait(3);
        }
        /* Who holds the monitor while the other is WAITING for it has a waiter to notify. */
        for (int i = 0; i < 2 * n; i++) {
            Thread t = new Thread(() -> {
                try {
                    synchronized (monitor) { monitor.wait(); }
                } catch (InterruptedException e) { }
            }, "waiter");
            t.start();
            for (boolean told = false; !told; Thread.yield()) {
                synchronized (monitor) {
                    if (t.getState() == Thread.State.WAITING) {
                        if (i % 2 == 0)
                            monitor.notify();
                        else
                            monitor.notifyAll();
                        told = true;
                    }
                }
            }
            t.join();
        }
    }

    static void pauses(int n) throws Exception {
        Thread t = new Thread(() -> {
            for (int i = 0; i < n; i++)
                LockSupport.parkNanos(100000);
            for (int i = 0; i < n; i++) {
                try { Thread.sleep(2); } catch (InterruptedException e) { calls = -1; }
            }
            try { Thread.sleep(3600000); } catch (InterruptedException e) { }
        }, "pauser");
        t.start();
        while (t.getState() != Thread.State.TIMED_WAITING || !sleeping(t))
            Thread.yield();
        t.interrupt();
        t.join();
    }

    static boolean sleeping(Thread t) { /* the long sleep: for 50 ms in a row */
        for (int i = 0; i < 50; i++) {
            if (t.getState() != Thread.State.TIMED_WAITING)
                return false;
            LockSupport.parkNanos(1000000);
        }
        return true;
    }

    static void objects(int n) {
        Thing[] t = new Thing[100];
        for (int i = 0; i < n; i++)
            t[i % 100] = new Thing(i);
        /* A name of 8n + 2 letters from the JVM's archive: no byte is between it and what comes next. */
        for (int i = 0; i < n; i++)
            calls += Optional.of(i).get() & 1;
        try { calls += Bad.v; } catch (ExceptionInInitializerError e) { threw++; }
    }

    static int leaf(int n) { calls++; return n + 1; }
    static int thrower(int n) { calls++; if (n % 2 == 0) { threw++; throw new Fault(); } return n; }
    static int middle(int n) { calls++; return thrower(n) + 1; }
    static int outer(int n) { calls++; try { return middle(n); } catch (Fault e) { return -1; } }

    static void methods(int n) {
        for (int i = 0; i < n; i++) { leaf(i); outer(i); }
        say("threw", threw);
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[1]);
        System.out.println("ready " + ProcessHandle.current().pid());
        System.out.flush();
        if (System.in.read() < 0)
            return;
        if (a[0].equals("methods")) {
            methods(n);
        } else {
            for (int i = 0; i < n; i++)
                System.gc();
            for (MemoryPoolMXBean p : ManagementFactory.getMemoryPoolMXBeans())
                say("pool " + p.getName(), p.getCollectionUsage() == null ? -1 : p.getCollectionUsage().getUsed());
            threads(n);
            contend(n);
            waits(n);
            pauses(n);
            objects(1000 * n);
        }
        System.out.println("done");
        System.out.flush();
        while (System.in.read() >= 0)
            ;
    }
}
