import { actor, at, type Examples, ids, page, segment } from './shared.ts'

const loss = {
  ...{ id: ids.loss, account_id: ids.account, endpoint_id: ids.endpoint, endpoint_name: 'checkout events', node_id: ids.node },
  ...{ node_name: 'fra-1', region: 'fra' },
  ...{ state: 'open', first_segment_seq: 42, last_segment_seq: 43, segments: 2, records: 285, bytes: 91_204 },
  summary: 'up to 285 acknowledged records, as of 2026-11-20T08:12:04.000Z, and what was acknowledged later',
  ...{ reported_at: '2026-11-20T08:12:04.000Z', recorded_at: at, is_node_back: false, cause: 'node_removed' },
  ...{ searched_at: at, search_problem: null },
  ...{ recovered: { segments: 0, records: 0, bytes: 0 }, recovered_at: null, confirmed_at: null, confirmed_by: null },
}

export const lossesExamples: Examples = {
  listLosses: { response: page(loss) },
  confirmLoss: { response: { ...loss, state: 'confirmed', confirmed_at: at, confirmed_by: actor } },
  listInstallationLosses: { response: page(loss) },
  confirmInstallationLoss: { response: { ...loss, state: 'confirmed', confirmed_at: at, confirmed_by: 'operator' } },
  getReceipt: {
    response: {
      ...{ node_id: ids.node, segment_seq: 42, state: 'delivered', reason: null },
      ...{ commit_id: `${ids.node}-k3v9x2m7q1-000000000042`, delivered_at: at },
      ...{ keys: [`parquet/${segment}.parquet`], loss_id: null },
    },
  },
}
