/** Values that several examples share: one installation, at one moment. */

export type Example = { readonly request?: unknown; readonly response?: unknown }

/** By operation id. Operations without a response body have none. */
export type Examples = Readonly<Record<string, Example>>

export const at = '2026-11-20T08:15:30.123Z'

export const id = (last: string) => `4f8c1f0e-6a53-4c0e-9d3b-${last.padStart(12, '0')}`

export const ids = {
  endpoint: id('e1'),
  destination: id('d1'),
  view: id('a1'),
  draft: id('a2'),
  binding: id('b1'),
  key: id('c1'),
  node: id('f1'),
  account: id('ac'),
  job: id('51'),
  loss: id('10'),
  joinToken: id('70'),
  person: id('9e'),
  invitation: id('1f'),
  session: id('5e'),
  secret: id('5c'),
}

export const actor = `key:${ids.key}`

export const segment = 'dt=2026-11-20/4f8c1f0e-k3v9x2m7q1-000000000042'

export const page = (item: unknown) => ({ items: [item], total: 1, limit: 50, offset: 0, next_offset: null })

/** Fields that a latest record and a latest dead letter have in common. */
export const storedRecord = {
  ...{ segment_seq: 42, record_index: 51_206, ingested_at: '2026-11-20T08:15:28.942113Z' },
  ...{ protocol: 'http', topic: null, client_id: null, attributes: null },
  ...{ record: '{"type":"order","amount":"twelve"}', record_base64: null, is_cut: false },
}
