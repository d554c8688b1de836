// Figures of a search's executions in a few lines. Only kernels have such figures.
#pragma once

#include <string>

#include "campaign/campaign.h"

namespace slalom {

std::string figures_in_words(const CampaignResult& result, size_t width);

}  // namespace slalom
