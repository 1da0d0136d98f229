<?php
// SPDX-License-Identifier: BSD-3-Clause
// A load for the profile php: it counts what it calls, by the name of the span and the line of the first thing that the
// function does. Arguments: calls in the fast loop, directory with files to include.
namespace App;

class N
{
    public static array $c = [];
}

function plain($x) { N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1; return $x; }

function nest($n) { N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    return $n == 0 ? 0 : nest($n - 1);
}

function fast($i) { N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1; }

function thrower()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    throw new \LogicException("no");
}

function passes()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    try {
        thrower();
    } finally {
        plain(1);
    }
}

function generator()
{
    yield 1;
    yield 2;
}

function fiber_one()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    leaf();
    \Fiber::suspend();
    leaf();
}

function fiber_two()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    leaf();
    \Fiber::suspend();
    leaf();
}

function leaf()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
}

function after_fibers()
{
    N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
}

class A
{
    public static function of_class()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    }

    public function method()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
        return $this->hidden();
    }

    private function hidden()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
        return 1;
    }

    public function outer()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
        $this->throws();
    }

    private function throws()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
        throw new \RuntimeException("no");
    }

    public function __destruct()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
    }
}

class B extends A
{
    public function method()
    {
        N::$c[__METHOD__ . ':' . __LINE__] = (N::$c[__METHOD__ . ':' . __LINE__] ?? 0) + 1;
        return parent::method() + 1;
    }
}

$thrown = ['RuntimeException' => 0, 'LogicException' => 0, 'DivisionByZeroError' => 0, 'ParseError' => 0];
echo "ready ", getmypid(), "\n";
fgets(STDIN);
for ($i = 0; $i < 10; $i++) {
    nest(3);
    plain($i);
}
for ($i = 0; $i < 7; $i++) {
    A::of_class();
    $a = new A;
    $a->method();
    unset($a);
    $b = new B;
    $b->method();
    unset($b);
}
for ($i = 0; $i < 5; $i++) {
    $a = new A;
    try {
        $a->outer();
    } catch (\RuntimeException $e) {
        $thrown['RuntimeException']++;
    }
    try {
        passes();
    } catch (\LogicException $e) {
        $thrown['LogicException']++;
    }
    try {
        intdiv(1, 0);
    } catch (\DivisionByZeroError $e) {
        $thrown['DivisionByZeroError']++;
    }
    unset($e, $a);
}
foreach (generator() as $x) {
    plain($x);
}
array_map(function ($x) { return $x; }, [1, 2, 3]);
$fibers = [new \Fiber('App\fiber_one'), new \Fiber('App\fiber_two')];
foreach ($fibers as $x) {
    $x->start();
}
foreach ($fibers as $x) {
    $x->resume();
}
after_fibers();
include $argv[2] . '/included.php';
try {
    include $argv[2] . '/broken.php';
} catch (\ParseError $e) {
    $thrown['ParseError']++;
}
for ($i = 0; $i < (int) $argv[1]; $i++) {
    fast($i);
}
foreach ($thrown as $k => $v) {
    echo "thrown $k=$v\n";
}
foreach (N::$c as $k => $v) {
    echo "$k=$v\n";
}
echo "done\n";
fgets(STDIN);
