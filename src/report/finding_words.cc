#include "report/finding_words.h"

#include "report/core/object_names.h"
#include "report/kernels/kernel_trace.h"

namespace slalom {

Finding in_words(const Finding& finding, const TraceLog& log, const Names& names) {
  Finding shown = finding;
  if (is_kernel_trace(log)) return shown;
  const ObjectNames named(log, names);
  const BugKind kind = finding.verdict.kind;
  const bool of_blocks =
      kind == BugKind::UseAfterFree || kind == BugKind::DoubleFree || kind == BugKind::Leak;
  shown.verdict.detail = named.renamed(shown.verdict.detail, of_blocks);
  for (Evidence& item : shown.verdict.evidence) item.text = named.renamed(item.text, of_blocks);
  for (OrderConstraint& order : shown.constraints)
    for (OrderPoint* point : {&order.before, &order.after}) point->text = named.renamed(point->text);
  return shown;
}

FindingWords words_of(const Finding& finding, const TraceLog& log, const Names& names) {
  FindingWords words;
  std::vector<std::string> texts = {finding.verdict.detail};
  const auto add = [&](Place pc, const std::string& text) {
    texts.push_back(text);
    if (std::string place = names.place(pc); pc.raw != 0 && place != "?") words.places[pc] = std::move(place);
  };
  for (const Evidence& item : finding.verdict.evidence) add(item.pc, item.text);
  for (const OrderConstraint& order : finding.constraints)
    for (const OrderPoint* point : {&order.before, &order.after}) add(point->pc, point->text);
  if (is_kernel_trace(log)) return words;
  for (const NamedObject& object : ObjectNames(log, names).explained(texts)) {
    using Kind = NamedObject::Kind;
    const bool is_block = object.kind == Kind::Block;
    const std::string kind = is_block ? "block" : object.kind == Kind::Local ? "local" : "object";
    words.objects.push_back({object.name, kind, object.address, object.size, object.type, object.function,
                             object.agent, is_block ? names.place(object.place) : "", object.is_freed});
  }
  return words;
}

}  // namespace slalom
