#include "model/model.hpp"

#include "core/error.hpp"
#include "model/dcnv2.hpp"
#include "model/deepfm.hpp"
#include "model/dlrm.hpp"
#include "model/fm.hpp"
#include "model/lr.hpp"
#include "model/wide_deep.hpp"

namespace hf {

std::shared_ptr<CtrModel> make_model(const Config& config, const Schema& schema) {
  if (schema.num_dense() + schema.num_sparse() == 0)
    throw ConfigError("features: a model needs at least one numeric or categorical feature, found none");
  switch (config.model.name) {
    case ModelKind::lr:
      return std::make_shared<LrModel>(config, schema);
    case ModelKind::fm:
      return std::make_shared<FmModel>(config, schema);
    case ModelKind::wide_deep:
      return std::make_shared<WideDeepModel>(config, schema);
    case ModelKind::deepfm:
      return std::make_shared<DeepFmModel>(config, schema);
    case ModelKind::dlrm:
      return std::make_shared<DlrmModel>(config, schema);
    case ModelKind::dcnv2:
      return std::make_shared<DcnV2Model>(config, schema);
  }
  HF_CHECK(false, "unknown model kind");
  return nullptr;
}

}  // namespace hf
