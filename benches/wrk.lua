-- wrk -s wrk.lua URL -- TARGETS [KEY]: cycles through the request targets of a file, one per line,
-- and prints the results as one line of JSON.

local requests, at = {}, 0

function init(args)
   if args[2] then wrk.headers["Authorization"] = "Bearer " .. args[2] end
   for target in io.lines(args[1]) do
      requests[#requests + 1] = wrk.format("GET", target)
   end
end

function request()
   at = at % #requests + 1
   return requests[at]
end

function done(summary, latency, _)
   local failed = summary.errors
   io.write(string.format(
      '{"requests":%d,"seconds":%f,"errors":%d,"p50_us":%d,"p99_us":%d,"worst_us":%d}\n',
      summary.requests, summary.duration / 1e6,
      failed.connect + failed.read + failed.write + failed.status + failed.timeout,
      latency:percentile(50), latency:percentile(99), latency.max))
end
