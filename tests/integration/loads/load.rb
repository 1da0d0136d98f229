# SPDX-License-Identifier: BSD-3-Clause
# frozen_string_literal: true
# A load for the profile ruby: it counts what it calls. ARGV: calls in the fast loop, directory with files to require,
# "points" for a trace point, without which Ruby tells nothing of methods that are written in Ruby.
TracePoint.new(:call, :return) {}.enable if ARGV[2] == "points"

C = Hash.new(0)

class Load
  def nest(n)
    C[:nest] += 1
    n == 0 ? 0 : nest(n - 1)
  end

  def with_block
    C[:with_block] += 1
    yield + yield
  end

  def boom
    C[:boom] += 1
    raise ArgumentError, "boom"
  end

  def outer
    C[:outer] += 1
    [1].map { boom }
  end

  def thrower
    C[:thrower] += 1
    [1].map { throw :out }
  end

  def early
    C[:early] += 1
    [1, 2].map { |x| return x }
  end

  def fast(i)
    C[:fast] += 1
    i
  end

  def leaf
    C[:leaf] += 1
  end

  def fiber_one
    C[:fiber_one] += 1
    leaf
    Fiber.yield
    leaf
  end

  def fiber_two
    C[:fiber_two] += 1
    leaf
    Fiber.yield
    leaf
  end

  def after_fibers
    C[:after_fibers] += 1
  end

  def self.of_class
    C[:of_class] += 1
  end
end

module Mixed
  def mixed
    C[:mixed] += 1
  end
end

class Load::Inner
  include Mixed
end

def at_top
  C[:at_top] += 1
end

# C methods, with the line they are called in.
def upcase(text)
  C[:"String#upcase:#{__LINE__ + 1}"] += 1
  text.upcase
end

def fetch(hash)
  C[:"Hash#fetch:#{__LINE__ + 2}"] += 1
  begin
    hash.fetch(:none)
  rescue KeyError
    C[:key_error] += 1
  end
end

def catching(load)
  C[:"Kernel#catch:#{__LINE__ + 1}"] += 1
  catch(:out) { load.thrower }
end

def reverse(array, n)
  C[:"Array#reverse:#{__LINE__ + 3}"] += n
  i = 0
  while i < n
    array.reverse
    i += 1
  end
end

def fibers(load)
  f = [Fiber.new { load.fiber_one }, Fiber.new { load.fiber_two }]
  f.each { |x| x.resume }
  f.each { |x| x.resume }
end

load = Load.new
inner = Load::Inner.new
array = [1, 2]
hash = {}
GC.disable
STDOUT.sync = true
puts "ready #{$$}"
STDIN.gets

i = 0
while i < 20
  load.nest(3) if i < 10
  load.with_block { 1 } if i < 5
  begin
    load.outer
  rescue ArgumentError
    C[:rescued] += 1
  end
  catching(load) if i < 7
  load.early if i < 6
  Load.of_class if i < 4
  inner.mixed if i < 3
  at_top if i < 2
  upcase("text") if i < 8
  fetch(hash)
  i += 1
end
fibers(load)
load.after_fibers
Thread.new { load.nest(2) }.join
Thread.new { load.nest(2) }.join
load.nest(0)
i = 0
while i < ARGV[0].to_i
  load.fast(i)
  i += 1
end
reverse(array, ARGV[2] == "points" ? ARGV[0].to_i / 10 : ARGV[0].to_i)
before = GC.count
5.times { GC.start }
C[:gcs] = GC.count - before
require ARGV[1] + "/wanted"
begin
  require ARGV[1] + "/missing"
rescue LoadError
  C[:load_error] += 1
end
begin
  require ARGV[1] + "/raises"
rescue RuntimeError
  C[:raises] += 1
end
begin
  Kernel.load ARGV[1] + "/broken.rb"
rescue RuntimeError
  C[:broken] += 1
end

# The line that the probe tells: of the first thing in the method, which is below its `def` here.
{nest: Load, with_block: Load, boom: Load, outer: Load, thrower: Load, early: Load, fast: Load, leaf: Load, fiber_one: Load,
 fiber_two: Load, after_fibers: Load, mixed: Mixed, at_top: Object, upcase: Object, fetch: Object, catching: Object, reverse: Object,
 fibers: Object}.each do |name, c|
  puts "line:#{c}##{name}=#{c.instance_method(name).source_location[1] + 1}"
end
puts "line:Load#of_class=#{Load.method(:of_class).source_location[1] + 1}"
C.each { |k, v| puts "#{k}=#{v}" }
puts "done"
STDIN.gets
