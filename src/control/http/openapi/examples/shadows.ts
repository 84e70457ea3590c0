import { actor, at, type Examples, id, ids } from './shared.ts'

const shadow = {
  ...{ id: id('5a'), endpoint_id: ids.endpoint, endpoint_name: 'checkout events' },
  ...{ view_id: ids.draft, view_name: 'orders', view_version: 2, started_at: at, started_by: actor },
}

export const shadowsExamples: Examples = {
  startShadow: { request: { view_id: ids.draft }, response: shadow },
  listShadows: { response: { items: [shadow] } },
  endShadow: {},
}
