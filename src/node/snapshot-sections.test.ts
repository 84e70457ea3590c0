import { describe, expect, test } from 'vitest'
import { fromSentView, SentView, toSentView } from '#model/definition.ts'
import { newId } from '#model/id.ts'
import { EndpointSection, type Section, type SectionsEnd } from '#model/snapshot-sections.ts'
import { aBoundView } from '../../test/support/delivery-node.ts'
import { aKey, anEndpoint, aSnapshot } from '../../test/support/ingest-node.ts'
import { snapshotLines } from '../../test/support/snapshot-lines.ts'
import { asStored, parseUpdates, printUpdate, SnapshotSections, type SnapshotUpdate } from './snapshot-sections.ts'

const everyKind = ['installation', 'keys', 'endpoints', 'views'] as const
const end = (change: Partial<SectionsEnd> = {}): SectionsEnd => ({ kind: 'end', epoch: 2, region: 'loc', removed: [], ...change })

function started(change = {}) {
  const sections = new SnapshotSections(everyKind)
  const snapshot = aSnapshot({ endpoints: [anEndpoint({ ingest_host: null, views: [aBoundView()] })], ...change })
  for (const update of parseUpdates(snapshotLines(snapshot))) sections.apply(update)
  return { sections, snapshot }
}

describe('SnapshotSections', () => {
  test('merges sections into a snapshot', () => {
    const { sections, snapshot } = started()
    expect(sections.current).toEqual(snapshot)
  })

  test('derives the host of an endpoint from its label and the base domain', () => {
    const { sections } = started({ endpoints: [anEndpoint({ ingest_host: 'abc.loc.ingest.example' })] })
    expect(sections.current?.endpoints[0]?.ingest_host).toBe('abc.loc.ingest.example')
  })

  test('a change of one kind keeps the arrays of the others', () => {
    const { sections } = started()
    const before = sections.current
    const keys: Section = { kind: 'keys', name: 'keys/11', version: 'x', keys: [aKey()], revoked_keys: [], expiring_keys: [] }
    const after = sections.apply({ sections: [keys], end: end() })
    expect(after.keys).toHaveLength(2)
    expect(after.endpoints).toBe(before?.endpoints)
    expect(sections.apply({ sections: [], end: end({ epoch: 3, removed: ['endpoints/00'] }) })).toMatchObject({
      keys: after.keys,
      endpoints: [],
    })
    expect(sections.current?.keys).toBe(after.keys)
  })

  test('a revoked key ended at once, unless control says that it expires: older releases do not say', () => {
    const { sections } = started()
    const [ended, expiring] = [newId(), newId()]
    const tokens_until = '2026-11-20T08:15:00.000Z'
    const section = { kind: 'keys', name: 'keys/22', version: 'x', keys: [], revoked_keys: [ended, expiring] }
    const parsed = (more: object) =>
      parseUpdates(Buffer.from([{ ...section, ...more }, end()].map((line) => `${JSON.stringify(line)}\n`).join('')))
    for (const update of parsed({})) sections.apply(update)
    expect(sections.current?.revoked_keys).toEqual([ended, expiring].map((id) => ({ id, tokens_until: null })))
    for (const update of parsed({ expiring_keys: [{ id: expiring, tokens_until }] })) sections.apply(update)
    expect(sections.current?.revoked_keys).toEqual([
      { id: ended, tokens_until: null },
      { id: expiring, tokens_until },
    ])
  })

  test('a definition has the form of its lists, which is sent beside it: releases before the choice reject it inside', () => {
    const { snapshot } = started()
    const bound = aBoundView()
    const definition = { ...bound.definition, lists: 'aligned' as const }
    const { lists, ...sent } = toSentView({ id: bound.view_id, name: bound.name, version: bound.version, definition })
    expect([lists, sent.definition]).toEqual(['aligned', bound.definition])
    const sections = new SnapshotSections(everyKind)
    const lines = snapshotLines({ ...snapshot, endpoints: [anEndpoint({ ingest_host: null, views: [bound] })] })
      .toString()
      .replace(JSON.stringify(bound.definition), `${JSON.stringify(bound.definition)},"lists":"aligned"`)
    for (const update of parseUpdates(Buffer.from(lines))) sections.apply(update)
    const viewsOf = () => sections.current?.endpoints.flatMap(({ views }) => views)
    expect(viewsOf()).toMatchObject([{ definition }])
  })

  test('a definition with computed columns is sent beside one that older releases take, and cannot compile', () => {
    const bound = aBoundView()
    const definition = {
      columns: [...bound.definition.columns, { name: 'other', type: 'VARCHAR', value: 'lower(n)', hidden: true }],
    }
    const view = { id: bound.view_id, name: bound.name, version: bound.version, definition }
    const sent = toSentView(view)
    expect(sent.definition.columns).toEqual([{ name: 'computed', type: 'VARCHAR', path: '$$.needs_a_newer_node' }])
    expect(fromSentView(SentView.parse(sent))).toEqual(view)
  })

  test('a view that may name secrets has them beside it, also where a start reads what an earlier release stored', () => {
    const bound = aBoundView()
    const value = "hmac_sha256('key', n)"
    const definition = { columns: [...bound.definition.columns, { name: 'hash', type: 'VARCHAR', value }] }
    const view = { id: bound.view_id, name: bound.name, version: bound.version, definition }
    const sent = SentView.parse(toSentView(view, { key: 'a2V5' }))
    expect(fromSentView(sent)).toEqual({ ...view, secrets: { key: 'a2V5' } })
    expect(toSentView(view)).toMatchObject({ secrets: {} })
    expect(toSentView({ ...view, definition: bound.definition }, {})).not.toHaveProperty('secrets')
    const versionOf = (views: SentView[]) =>
      asStored({ sections: [{ kind: 'views', name: 'views/00', version: 'v1', views }], end: end() }).sections[0]?.version
    const { secrets: _, computed: __, ...before } = sent
    const { secrets: ___, ...without } = sent
    expect([versionOf([sent]), versionOf([without]), versionOf([before])]).toEqual(['v1', '', ''])
  })

  test('rejects an update without the definition of a bound view, and changes nothing', () => {
    const { sections, snapshot } = started()
    const [endpoint] = snapshot.endpoints
    const active = { activated_at: '2026-11-20T08:00:00.000Z', deactivated_at: null, canary_start_ts: null }
    const bindings = [{ binding_id: newId(), view_id: newId(), is_required: false, ...active }]
    const { ingest_host: _host, views: _views, shadows: _shadows, committed_seq: _seq, ...rest } = endpoint ?? anEndpoint()
    const broken: SnapshotUpdate = {
      sections: [{ kind: 'endpoints', name: 'endpoints/00', version: 'x', endpoints: [{ ...rest, label: 'abc', bindings }] }],
      end: end(),
    }
    const versions = sections.versions()
    expect(() => sections.apply(broken)).toThrow(/lacks the definition of view/)
    expect(sections.current).toEqual(snapshot)
    expect(sections.versions()).toEqual(versions)
  })

  test('a stored section without fields of this release has no version, so that control sends it again', () => {
    const snapshot = aSnapshot({ endpoints: [anEndpoint({ kept_fields: ['address'] })] })
    const stored = parseUpdates(snapshotLines(snapshot)).map(asStored)
    const versions = (updates: readonly SnapshotUpdate[]) =>
      updates.flatMap(({ sections }) => sections.map(({ name, version }) => [name, version]))
    expect(versions(stored).every(([, version]) => version === 'v1')).toBe(true)
    // Earlier releases knew neither `name` of a key, nor `kept_fields`, nor shadows.
    const earlier = snapshotLines(snapshot)
      .toString()
      .replaceAll(/,"(name":"a key"|kept_fields":\["address"\]|shadows":\[\])/g, '')
    const asRead = parseUpdates(Buffer.from(earlier)).map(asStored)
    expect(Object.fromEntries(versions(asRead))).toEqual({
      ...{ installation: 'v1', 'keys/00': '', 'endpoints/00': '', 'views/00': 'v1' },
    })
    const sections = new SnapshotSections(everyKind)
    for (const update of asRead) sections.apply(update)
    expect(sections.current?.endpoints[0]?.kept_fields).toEqual([])
    expect(sections.current?.keys).toEqual([{ ...aKey(), name: undefined }])
  })

  test('a node of the release before shadows takes the rest, and has them once it is upgraded', () => {
    const shadow = aBoundView({
      version: 2,
      definition: { expand: '$.items[*]', columns: [{ name: 'sku', type: 'VARCHAR', path: '$item' }], dedupe_by: ['sku'] },
    })
    const endpoint = anEndpoint({ ingest_host: null, views: [aBoundView()], shadows: [shadow] })
    const snapshot = aSnapshot({ endpoints: [endpoint] })
    const sent = parseUpdates(snapshotLines(snapshot))
    const Earlier = EndpointSection.omit({ shadows: true })
    const stored = sent.map(({ sections, end: last }) => ({
      sections: sections.map((section) =>
        section.kind === 'endpoints' ? { ...section, endpoints: section.endpoints.map((each) => Earlier.parse(each)) } : section,
      ),
      end: last,
    }))
    const sections = new SnapshotSections(everyKind)
    for (const update of stored) sections.apply(update)
    const { shadows: _, ...rest } = endpoint
    expect(sections.current?.endpoints).toEqual([rest])
    // The upgraded process reads what the earlier one stored, and tells control that it lacks something.
    const upgraded = new SnapshotSections(everyKind)
    for (const update of stored.map(printUpdate).flatMap(parseUpdates).map(asStored)) upgraded.apply(update)
    expect(upgraded.current?.endpoints).toEqual([rest])
    expect(upgraded.versions()['endpoints/00']).toBe('')
    for (const update of sent) upgraded.apply(update)
    expect(upgraded.current).toEqual(snapshot)
  })

  test('a shadow is no view of its endpoint, and brings its definition', () => {
    const definition = { columns: [{ name: 'a', type: 'VARCHAR', value: 'lower(b)' }] }
    const shadow = aBoundView({ version: 2, definition })
    const { sections, snapshot } = started({ endpoints: [anEndpoint({ ingest_host: null, shadows: [shadow] })] })
    expect(sections.current).toEqual(snapshot)
    expect(sections.current?.endpoints[0]).toMatchObject({ views: [], shadows: [{ definition }] })
    // A process that fetches no views runs none.
    const ingest = new SnapshotSections(['installation', 'keys', 'endpoints'])
    for (const update of parseUpdates(snapshotLines(snapshot, ['installation', 'keys', 'endpoints']))) ingest.apply(update)
    expect(ingest.current?.endpoints[0]?.shadows).toBeUndefined()
  })

  test('forget keeps the current snapshot but starts the next one from nothing', () => {
    const { sections, snapshot } = started()
    sections.forget()
    expect(sections.versions()).toEqual({})
    expect(sections.current).toEqual(snapshot)
    expect(sections.apply({ sections: [], end: end() })).toMatchObject({ keys: [], endpoints: [] })
  })

  test('committed seqs apply from the next update on', () => {
    const { sections, snapshot } = started()
    const id = snapshot.endpoints[0]?.id ?? ''
    sections.setCommitted({ seqs: { [id]: 7 } })
    expect(sections.apply({ sections: [], end: end() }).endpoints[0]?.committed_seq).toBe(7)
  })

  test('without the kind views, endpoints have no views and need no definitions', () => {
    const sections = new SnapshotSections(['endpoints'])
    const snapshot = aSnapshot({ endpoints: [anEndpoint({ views: [aBoundView()] })] })
    for (const update of parseUpdates(snapshotLines(snapshot, ['endpoints']))) sections.apply(update)
    expect(sections.current?.endpoints[0]?.views).toEqual([])
  })
})

describe('parseUpdates', () => {
  test('ignores a truncated update at the end, and rejects anything else', () => {
    const update: SnapshotUpdate = { sections: [], end: end() }
    const line = printUpdate(update)
    expect(parseUpdates(Buffer.concat([line, line]))).toEqual([update, update])
    for (let length = 0; length < line.length; length += 1) expect(parseUpdates(line.subarray(0, length))).toEqual([])
    expect(() => parseUpdates(Buffer.from('{}\n'))).toThrow()
    expect(() => parseUpdates(Buffer.from('no JSON\n'))).toThrow()
  })
})
