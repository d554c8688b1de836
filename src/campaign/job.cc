#include "campaign/job.h"

#include "trace/files/serialise.h"

namespace slalom {

void encode(ByteWriter& out, const Job& job) {
  encode(out, job.target.kind);
  encode(out, job.target.name);
  encode(out, job.target.content);
  out.u64(job.target.params.size());
  for (const auto& [name, value] : job.target.params) {
    encode(out, name);
    out.i64(value);
  }
  encode(out, to_text(job.strategy));
  out.u64(job.strategy.seed);
  encode(out, job.policy);
  out.u64(job.max_steps);
  encode(out, job.detectors);
}

void decode(ByteReader& in, Job& job) {
  std::string kind, name, content, strategy;
  decode(in, kind);
  decode(in, name);
  decode(in, content);
  std::vector<std::pair<std::string, int64_t>> params;
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    auto& [key, value] = params.emplace_back();
    decode(in, key);
    value = in.i64();
  }
  job.target = make_target(std::move(kind), std::move(name), std::move(content), std::move(params));
  decode(in, strategy);
  Result<StrategySpec> spec = parse_strategy(strategy, in.u64());
  if (spec.ok())
    job.strategy = *spec;
  else
    in.fail();
  decode(in, job.policy);
  job.max_steps = in.u64();
  decode(in, job.detectors);
}

}  // namespace slalom
