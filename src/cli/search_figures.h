// What the executions of a search were like, in a few lines: of kernels, which have such figures.
#pragma once

#include <string>

#include "campaign/campaign.h"

namespace slalom {

std::string figures_in_words(const CampaignResult& result, size_t width);

}  // namespace slalom
