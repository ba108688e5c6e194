// Everything a training program needs.
#pragma once

#include "hyperframes/embedding.hpp"
#include "hyperframes/error.hpp"
#include "hyperframes/optimizer.hpp"
#include "hyperframes/process_group.hpp"
#include "hyperframes/table_options.hpp"
