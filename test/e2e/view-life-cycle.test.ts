/** The views that apply to a segment: on two nodes, with two versions at once, from the start of a canary on. Commit and marker list them. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

type SealedMarker = {
  readonly sealed_at: string
  readonly artifacts: Readonly<Record<string, { readonly view_id?: string; readonly view_version?: number }>>
  readonly views: readonly { readonly view_id: string; readonly view_version: number; readonly processed: number }[]
}

type CommitOf = { readonly node_id: string; readonly seq: number }

const bucket = 'life'
const columns = [{ name: 'n', type: 'BIGINT', path: '$.n' }]
const isOfView = (kind: string) => kind.startsWith('views/')

describeWith('processes', 'views on two nodes', () => {
  let control: Installation
  let other: Installation
  let id = ''
  let versions: readonly string[] = []
  const ids: string[] = []

  /** Sends one record to a node. Returns the kinds of view files in the commit of its segment. */
  const deliver = async (node: Installation): Promise<{ readonly commit: string; readonly kinds: readonly string[] }> => {
    const response = await fetch(`${node.ingestUrl}/v1/ingest?endpoint=${id}`, {
      method: 'POST',
      headers: { 'x-api-key': control.apiKey, 'content-type': 'application/x-ndjson' },
      body: '{"n":1}\n',
    })
    const receipt = (await response.json()) as { readonly node_id: string; readonly segment_seq: number }
    expect(response.status, JSON.stringify(receipt)).toBe(202)
    let found: { readonly id: string; readonly artifacts: object } | undefined
    await until(
      `segment ${receipt.segment_seq} of ${receipt.node_id}`,
      async () => {
        const { items } = await control.ok('GET', `/v1/endpoints/${id}/commits?limit=10`)
        found = items.find(({ node_id, seq }: CommitOf) => node_id === receipt.node_id && seq === receipt.segment_seq)
        return found !== undefined
      },
      30_000,
    )
    return {
      commit: found?.id ?? '',
      kinds: Object.keys(found?.artifacts ?? {})
        .filter(isOfView)
        .toSorted(),
    }
  }
  /** Each node reaches this state by itself, at a segment of its own, and stays there. */
  const bothDeliver = (kinds: readonly string[]) =>
    Promise.all(
      [control, other].map(async (node) => {
        await until(`segments with ${kinds.join()}`, async () => String((await deliver(node)).kinds) === String(kinds), 30_000)
        expect((await deliver(node)).kinds).toEqual(kinds)
      }),
    )
  const attach = async (view_id: string | undefined, settings: object = {}): Promise<string> =>
    (await control.ok('POST', `/v1/endpoints/${id}/views`, { view_id, ...settings })).id
  const detach = (binding: string) => control.ok('DELETE', `/v1/endpoints/${id}/views/${binding}`)
  const marker = (commit: string): SealedMarker => {
    const found = [control, other].flatMap((node) => node.markers(bucket, id)).find((each) => each.id === commit)
    if (found === undefined) throw new Error(`no marker of ${commit}`)
    return found as unknown as SealedMarker
  }

  beforeAll(async () => {
    const environment = { INLET_NODE_TOKEN: randomBytes(32).toString('hex') }
    control = await Installation.create({ environment })
    await control.start('start')
    other = await Installation.create({ environment: { ...environment, INLET_CONTROL_URL: control.nodeApiUrl } })
    other.spawn('node')
    await until(
      'the other node to serve',
      () =>
        fetch(`${other.ingestUrl}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      60_000,
    )
    id = (await control.endpoint({ bucket, output_formats: ['parquet_views'] })).id
    await until(
      'the other node to know the endpoint',
      () =>
        fetch(`${other.ingestUrl}/v1/ingest?endpoint=${id}`, {
          method: 'POST',
          headers: { 'x-api-key': control.apiKey, 'content-type': 'application/x-ndjson' },
          body: '{"n":0}',
        }).then(({ ok }) => ok),
      30_000,
    )
    const first = await control.ok('POST', '/v1/views', { name: 'life', definition: { columns } })
    await control.ok('POST', `/v1/views/${first.id}/publish`)
    const second = await control.ok('POST', `/v1/views/${first.id}/versions`)
    await control.ok('PATCH', `/v1/views/${second.id}`, {
      definition: { columns: [...columns, { name: 's', type: 'VARCHAR', path: '$.s' }] },
    })
    await control.ok('POST', `/v1/views/${second.id}/publish`)
    versions = [first.id, second.id]
  }, 120_000)
  afterAll(async () => {
    await other.end('node', 'SIGTERM')
    await other[Symbol.asyncDispose]()
    await control[Symbol.asyncDispose]()
  }, 60_000)

  test('a binding takes effect on each node with a later segment', async () => {
    await bothDeliver([])
    ids.push(await attach(versions[0], { is_required: true }))
    await bothDeliver(['views/life/v1'])
  })

  test('two versions apply at once, and commit and marker name them', async () => {
    ids.push(await attach(versions[1]))
    await bothDeliver(['views/life/v1', 'views/life/v2'])
    for (const node of [control, other]) {
      const { commit } = await deliver(node)
      const { artifacts, views } = marker(commit)
      expect(views).toMatchObject(versions.map((view_id, index) => ({ view_id, view_version: index + 1, processed: 1 })))
      for (const [index, view_id] of versions.entries()) {
        expect(artifacts[`views/life/v${index + 1}`]).toMatchObject({ view_id, view_version: index + 1 })
      }
    }
  })

  test('a detached version disappears from each node with a later segment, the other stays', async () => {
    await detach(ids.shift() ?? '')
    await bothDeliver(['views/life/v2'])
  })

  test('a canary applies to exactly the segments that are sealed from its start on', async () => {
    await detach(ids.shift() ?? '')
    await bothDeliver([])
    const start = new Date(Date.now() + runs(3_000, 6_000)).toISOString()
    await attach(versions[0], { canary_start_ts: start })
    const watch = async (node: Installation): Promise<boolean[]> => {
      const { commit, kinds } = await deliver(node)
      const applies = kinds.length > 0
      expect({ commit, applies }).toEqual({ commit, applies: marker(commit).sealed_at >= start })
      return applies ? [applies] : [applies, ...(await watch(node))]
    }
    for (const seen of await Promise.all([control, other].map(watch))) {
      expect(new Set(seen)).toEqual(new Set([false, true]))
    }
  })

  test('archiving a view detaches it from each node', async () => {
    await control.ok('POST', `/v1/views/${versions[0]}/archive`)
    await bothDeliver([])
  })
})
