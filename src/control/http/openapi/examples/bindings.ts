import { actor, at, type Examples, ids } from './shared.ts'

export const attachment = { is_required: false, activated_at: at, canary_start_ts: null, canary_rule: null }

const binding = {
  id: ids.binding,
  endpoint_id: ids.endpoint,
  endpoint_name: 'checkout events',
  view_id: ids.view,
  view_name: 'orders',
  view_version: 1,
  ...attachment,
  activated_by: actor,
  deactivated_at: null,
  stopped_reason: null,
  status: 'active',
}

export const bindingsExamples: Examples = {
  attachView: { request: { view_id: ids.view, is_required: false }, response: { ...binding, warnings: [] } },
  listBindings: { response: { items: [binding] } },
  detachView: {},
}
