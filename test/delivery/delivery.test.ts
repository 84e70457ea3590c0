import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { must } from '#lib/assert.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { commitId, type SegmentCommit as Marker } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { runCli } from '../support/cli.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { readMarkers } from '../support/markers.ts'
import { until } from '../support/until.ts'

const brokenView = { definition: { columns: [{ name: 'n', type: 'NO_SUCH_TYPE', path: '$.n' }] } }

async function segments(node: DeliveryNode, endpointId: string): Promise<readonly string[]> {
  return (await readdir(join(node.config.paths.wal, endpointId))).filter((name) => name !== 'high-water').toSorted()
}

describe('a destination that fails', () => {
  test('segments wait, report the reason, and are delivered in order once it recovers', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}', '{"n":5}')
    let down = true
    node.stores.fault = () => (down ? 'refused' : undefined)
    await node.start()
    await until('ten attempts', () => node.stores.attempts > 10)
    await until('the reason', () => node.lag(endpoint.id)?.blocked_by?.includes('SlowDown') === true)
    expect(node.lag(endpoint.id)).toMatchObject({ undelivered_segments: 5, oldest_sealed_at: expect.stringMatching(/Z$/) })
    expect(node.commits).toEqual([])
    down = false
    await until('five commits', () => node.commits.length === 5)
    expect(node.commits.map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4])
    await until('the log to be empty', async () => (await segments(node, endpoint.id)).length === 0)
    await until('the lag to be gone', () => node.lag(endpoint.id) === undefined)
  })

  test('a write-only role still delivers, and after a restart delivers again under the same keys', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    node.stores.isUnreadable = true
    node.stores.fault = (key) => (key.includes('/commits/') ? 'answer lost' : undefined)
    await node.seal(endpoint.id, '{"n":1}')
    await node.start()
    await until('a marker', () => node.stores.done.some((key) => key.includes('/commits/')))
    await node.stop()
    expect(node.commits).toEqual([])
    node.stores.fault = () => undefined
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await node.seal(endpoint.id, '{"n":2}')
    await until('the next', () => node.commits.length === 2)
    expect(new Set(node.stores.done).size).toBe(4)
  })

  test('a lost response causes no second commit', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}')
    const lost = new Set<string>()
    node.stores.fault = (key) => {
      if (lost.has(key)) return undefined
      lost.add(key)
      return 'answer lost'
    }
    await node.start()
    await node.stop()
    expect(node.commits).toHaveLength(1)
    expect(lost.size).toBe(2)
  })

  test.each([
    ['a marker', '/commits/', /accepted .*\/commits\/.*, but does not have what was sent/],
    ['a file', '/parquet/', /deleted from the bucket, or replaced, before its marker was written/],
  ])('nothing is committed while the store acknowledges %s that it does not keep', async (_, folder, reason) => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}')
    let attempts = 0
    let keeps = false
    node.stores.fault = (key) => {
      if (keeps || !key.includes(folder)) return undefined
      attempts += 1
      return 'not stored'
    }
    await node.start()
    await until('attempts, and the reason', () => attempts > 2 && reason.test(node.lag(endpoint.id)?.blocked_by ?? ''))
    expect(node.commits).toEqual([])
    keeps = true
    await until('the commit', () => node.commits.length === 1)
    const { id, artifacts } = must(node.commits[0], 'a commit')
    for (const { key } of Object.values(artifacts)) expect(node.stores.done).toContain(key)
    await until('the removal', async () => (await segments(node, endpoint.id)).length === 0)
    expect(readMarkers(join(node.config.paths.buckets, 'bucket'), '', endpoint.id).map((marker) => marker.id)).toEqual([id])
  })

  test('a slow upload delays the markers of later segments, not their uploads', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}', '{"n":3}')
    const { promise, resolve } = Promise.withResolvers<void>()
    node.stores.delay = (key) => (key.includes('-000000000000.parquet') ? promise : undefined)
    await node.start()
    await until('the uploads of the others', () => node.stores.done.length === 2)
    expect(node.stores.done.every((key) => key.endsWith('.parquet'))).toBe(true)
    resolve()
    await node.stop()
    const markers = node.stores.done.filter((key) => key.includes('/commits/'))
    expect(markers.map((key) => Number(/-(\d{12})\.json$/.exec(key)?.[1]))).toEqual([0, 1, 2])
  })

  test('only the first segment of a log is converted during an outage of its destination, and every log reports the reason', async () => {
    const [one, two] = [anEndpointTo(aDestination('lake')), anEndpointTo(null)]
    const both = [one, { ...two, destination: one.destination }]
    await using node = await DeliveryNode.create(one, two)
    await node.sealAll([one, two].flatMap(({ id }) => [1, 2, 3, 4].map((n) => [id, `{"n":${n}}`] as const)))
    node.stores.fault = () => 'refused'
    await node.start()
    await until('the outage', () => node.lag(one.id)?.blocked_by?.includes('SlowDown') === true)
    const built = async () => (await readdir(node.config.paths.scratch)).length
    node.configure(...both)
    await until('the other to know', () => node.lag(two.id)?.blocked_by?.includes('SlowDown') === true)
    await until('attempts', () => node.stores.attempts > 12)
    // Three segments of the first log were started before the outage.
    expect(await built()).toBeLessThanOrEqual(4)
    node.stores.fault = () => undefined
    await until('all commits', () => node.commits.length === 8)
  })

  test('a failing destination does not delay other endpoints', async () => {
    const failing = anEndpointTo(aDestination('failing'))
    const healthy = anEndpointTo(aDestination('healthy'))
    await using node = await DeliveryNode.create(failing, healthy)
    await node.seal(failing.id, ...Array.from({ length: 8 }, (_, n) => `{"n":${n}}`))
    await node.seal(healthy.id, '{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}')
    node.stores.fault = (_, bucket) => (bucket === 'failing' ? 'refused' : undefined)
    await node.start()
    await until('the healthy one', () => node.commits.length === 4)
    expect(node.commits.every(({ endpoint_id }) => endpoint_id === healthy.id)).toBe(true)
  })
})

test('equal seqs of two endpoints are different segments', async () => {
  const [one, two] = [anEndpointTo(aDestination('one')), anEndpointTo(aDestination('two'))]
  await using node = await DeliveryNode.create(one, two)
  await node.sealAll([
    [one.id, '{"n":1}'],
    [two.id, '{"n":2}'],
    [one.id, '{"n":3}'],
    [two.id, '{"n":4}'],
  ])
  await node.start()
  await until('four commits', () => node.commits.length === 4)
  expect(new Set(node.commits.map(({ id }) => id)).size).toBe(4)
  for (const { id } of [one, two]) {
    expect(node.commits.filter(({ endpoint_id }) => endpoint_id === id).map(({ seq }) => seq)).toEqual([0, 1])
    await until('the log to be empty', async () => (await segments(node, id)).length === 0)
  }
})

describe('the bucket belongs to the customer', () => {
  test('files that were deleted before their marker was written are uploaded again', async () => {
    const endpoint = anEndpointTo(aDestination('lake'))
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}', '{"n":3}')
    const { promise, resolve } = Promise.withResolvers<void>()
    // The others are uploaded and wait for their turn.
    node.stores.delay = (key) => (key.includes('-000000000000.parquet') ? promise : undefined)
    await node.start()
    await until('the uploads of the others', () => node.stores.done.length === 2)
    // The bucket is deleted and created again between two requests.
    await rm(join(node.config.paths.buckets, 'lake'), { recursive: true })
    resolve()
    await until('the commits', () => node.commits.length === 3)
    for (const { artifacts } of node.commits) {
      for (const { key, bytes } of Object.values(artifacts))
        expect((await readFile(join(node.config.paths.buckets, 'lake', key))).length, key).toBe(bytes)
    }
    expect(node.commits.map(({ seq }) => seq)).toEqual([0, 1, 2])
  })

  /** Creates two endpoints. One has delivered a segment, and only its bucket shows that. */
  async function withMarkers() {
    const [mine, other] = [anEndpointTo(aDestination('mine')), anEndpointTo(aDestination('other'))]
    const node = await DeliveryNode.create(mine, other)
    await node.sealAll([...[1, 2, 3, 4, 5].map((n) => [mine.id, `{"n":${n}}`] as const), [other.id, '{"n":"other"}']])
    node.control.refusesCommits = true
    node.stores.fault = (_, bucket) => (bucket === 'other' ? 'refused' : undefined)
    await node.start()
    await until('the markers', () => node.stores.done.filter((key) => key.includes('/commits/')).length === 5)
    await node.stop(AbortSignal.abort())
    await rm(node.config.paths.outbox, { recursive: true })
    node.control.refusesCommits = false
    const markers = node.stores.done.filter((key) => key.includes('/commits/')).toSorted()
    return { node, mine, other, paths: markers.map((key) => join(node.config.paths.buckets, 'mine', key)) }
  }

  test('markers of an earlier run are adopted unchanged', async () => {
    const at = await withMarkers()
    await using node = at.node
    const before = await Promise.all(at.paths.map((path) => readFile(path, 'utf8')))
    const puts = node.stores.done.length
    node.stores.fault = () => undefined
    await node.start()
    await until('all commits', () => node.commits.length === 6)
    expect(await Promise.all(at.paths.map((path) => readFile(path, 'utf8')))).toEqual(before)
    // The bucket has only the other endpoint's file and marker.
    expect(node.stores.done.length).toBe(puts + 2)
  })

  test.each([
    ['another endpoint’s segment', (marker: Marker, other: Marker) => ({ ...marker, endpoint_id: other.endpoint_id })],
    ['another id', (marker: Marker) => ({ ...marker, id: '../../../elsewhere' })],
    ['another seq', (marker: Marker) => ({ ...marker, seq: marker.seq + 1 })],
    ['another log', (marker: Marker) => ({ ...marker, log: 'abcdefghij' })],
    ['fewer records', (marker: Marker) => ({ ...marker, records: 0 })],
    [
      'files elsewhere',
      (marker: Marker) => ({ ...marker, artifacts: { parquet: { ...marker.artifacts['parquet'], key: 'x' } } }),
    ],
    [
      'a view that is not bound to the endpoint',
      (marker: Marker) => {
        const counts = { processed: 1, accepted: 1, dropped: 0, dlq: 0, failed: 0, cast_nulls: 0, errors: {}, last_error: null }
        return { ...marker, views: [{ view_id: newId(), view_name: 'v', view_version: 1, ...counts }] }
      },
    ],
  ])('a marker that this node would not have written is ignored: %s', async (_, forge) => {
    const at = await withMarkers()
    await using node = at.node
    const [first = '', ...others] = at.paths
    const marker = JSON.parse(await readFile(first, 'utf8')) as Marker
    const forged = forge(marker, { ...marker, endpoint_id: at.other.id })
    await writeFile(first, JSON.stringify(forged))
    await node.start()
    await until('the commits', () => node.commits.length === 5)
    expect(node.commits.map(({ endpoint_id, seq }) => [endpoint_id, seq])).toEqual(
      [0, 1, 2, 3, 4].map((seq) => [at.mine.id, seq]),
    )
    expect(JSON.parse(await readFile(first, 'utf8'))).toMatchObject({
      id: marker.id,
      records: 1,
      artifacts: marker.artifacts,
      views: [],
    })
    expect(others).toHaveLength(4)
    await until('the log to be empty', async () => (await segments(node, at.mine.id)).length === 0)
    // The other endpoint's segment is not treated as delivered.
    expect(await segments(node, at.other.id)).toHaveLength(1)
    node.stores.fault = () => undefined
    await until('the other’s commit', () => node.commits.length === 6)
  })
})

describe('the bound destination', () => {
  test('segments wait without one, and are delivered once one is bound', async () => {
    const endpoint = anEndpointTo(null)
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}')
    await node.start()
    await until('the reason', () => node.lag(endpoint.id)?.blocked_by === 'no destination is bound to the endpoint')
    node.configure({ ...endpoint, destination: aDestination('late') })
    await until('the commit', () => node.commits.length === 1)
    expect(node.commits[0]?.destination.bucket).toBe('late')
  })

  test('a change while segments wait moves all of their files', async () => {
    const endpoint = anEndpointTo(aDestination('old'), { output_formats: ['parquet', 'segments'] })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
    // The first file of each segment reaches the old bucket, the second never does.
    node.stores.fault = (key, bucket) => (bucket === 'old' && !key.includes('/parquet/') ? 'refused' : undefined)
    await node.start()
    await until('attempts', () => node.stores.attempts > 6)
    node.configure({ ...endpoint, destination: aDestination('new') })
    await until('both commits', () => node.commits.length === 2)
    for (const { destination, artifacts } of node.commits) {
      expect(destination.bucket).toBe('new')
      for (const { key } of Object.values(artifacts)) await readFile(join(node.config.paths.buckets, 'new', key))
    }
  })
})

const markersOf = ({ config }: DeliveryNode, endpointId: string) =>
  readMarkers(join(config.paths.buckets, 'bucket'), '', endpointId)

describe('views', () => {
  test('a required view that fails as a whole blocks the log, and no other, until it is detached', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet', 'parquet_views'] })
    const view = aBoundView({ ...brokenView, is_required: true })
    const other = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create({ ...endpoint, views: [view] }, other)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
    await node.start()
    await until('the report', () => node.lag(endpoint.id)?.failing_view != null)
    expect(node.lag(endpoint.id)).toMatchObject({
      blocked_by: expect.stringContaining('the required view numbers v1 failed: the view definition cannot be compiled'),
      failing_view: { view_id: view.view_id, since: expect.any(String) },
    })
    await node.seal(other.id, '{"n":1}')
    await until('the commit of the other endpoint', () => node.commits.length === 1)
    expect(node.lag(other.id)?.failing_view ?? null).toBeNull()
    node.configure({ ...endpoint, views: [{ ...view, deactivated_at: '2999-01-01T00:00:00.000Z' }] }, other)
    await until('all commits', () => node.commits.length === 3)
    await until('the end of the report', () => (node.lag(endpoint.id)?.failing_view ?? null) === null)
    const released = node.commits.filter(({ endpoint_id }) => endpoint_id === endpoint.id)
    for (const { views } of released) expect(views).toMatchObject([{ failed: 1, errors: { view_failed: 1 } }])
  })

  test('a view that was attached right before the seal applies, although this node has yet to learn of it', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet_views', 'parquet'] })
    await using node = await DeliveryNode.create(endpoint)
    await node.start()
    await node.seal(endpoint.id, '{"n":1}')
    await until('the first commit', () => node.commits.length === 1)
    await node.control.sendingSlowly(async () => {
      node.configure({ ...endpoint, views: [aBoundView({ activated_at: new Date().toISOString() })] })
      await node.seal(endpoint.id, '{"n":2}')
      await until('some questions', () => node.control.outdatedChecks > 5)
    })
    await until('the second commit', () => node.commits.length === 2)
    expect(node.commits.map(({ views }) => views.map(({ view_name }) => view_name))).toEqual([[], ['numbers']])
  })

  test('while control is away, a view applies to the segments that were sealed in its time, as far as the node knows', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet_views', 'parquet'] })
    const [detached, canary] = [aBoundView({ name: 'detached' }), aBoundView({ name: 'canary' })]
    await using node = await DeliveryNode.create(endpoint)
    await node.start()
    await node.seal(endpoint.id, '{"n":1}')
    await until('the first commit', () => node.commits.length === 1)
    const since = new Date().toISOString()
    node.configure({
      ...endpoint,
      views: [
        { ...detached, deactivated_at: since },
        { ...canary, canary_start_ts: since },
      ],
    })
    await node.seal(endpoint.id, '{"n":2}')
    await until('the second commit', () => node.commits.length === 2)
    node.control.isAway = true
    await node.seal(endpoint.id, '{"n":3}')
    await until('the markers', () => markersOf(node, endpoint.id).length === 3)
    expect(markersOf(node, endpoint.id).map(({ views }) => views.map(({ view_name }) => view_name))).toEqual([
      [],
      ['canary'],
      ['canary'],
    ])
  })

  test('an optional view that fails is left out and counted, and its records are delivered as raw Parquet even if that format is off', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet_views'] })
    const views = [aBoundView(brokenView), aBoundView({ name: 'sound' })]
    await using node = await DeliveryNode.create({ ...endpoint, views })
    await node.seal(endpoint.id, '{"n":1}\n{"n":2}')
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    expect(Object.keys(node.commits[0]?.artifacts ?? {}).toSorted()).toEqual(['manifest', 'parquet', 'views/sound/v1'])
    const outcome = node.commits[0]?.views.find(({ view_name }) => view_name === 'numbers')
    expect(outcome).toMatchObject({
      ...{ processed: 2, accepted: 0, dropped: 0, dlq: 0, failed: 2 },
      errors: { view_failed: 2 },
      last_error: { code: 'view_failed' },
    })
  })

  test('a view that makes many rows of one record counts records, and its file has the rows', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet_views'] })
    const columns = [
      { name: 'sku', type: 'VARCHAR', path: '$item.sku', required: true },
      { name: 'at', type: 'INTEGER', path: '$$.item_index' },
    ]
    const views = [aBoundView({ name: 'items', definition: { expand: '$.items[*]', columns } }), aBoundView()]
    await using node = await DeliveryNode.create({ ...endpoint, views })
    const lines = [
      '{"n":1,"items":[{"sku":"a"},{"sku":"b"}]}',
      '{"n":2,"items":[{"sku":"c"},{}]}',
      '{"n":3}',
      '{"n":4,"items":5}',
    ]
    await node.seal(endpoint.id, lines.join('\n'))
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    const { artifacts = {}, views: outcomes = [] } = node.commits[0] ?? {}
    expect(outcomes).toMatchObject([
      {
        view_name: 'items',
        processed: 4,
        accepted: 1,
        dropped: 1,
        dlq: 2,
        rows: 2,
        errors: { missing_required: 1, expand_failed: 1 },
      },
      { view_name: 'numbers', processed: 4, accepted: 4, dropped: 0, dlq: 0 },
    ])
    expect(outcomes[1]).not.toHaveProperty('rows')
    expect(outcomes[0]?.quality?.columns).toMatchObject([
      { name: 'sku', values: 2, missing: 1 },
      { name: 'at', min: '0', max: '1' },
    ])
    expect(artifacts['views/items/v1']?.rows).toBe(2)
    expect(artifacts['dlq/items/v1']?.rows).toBe(2)
    expect(artifacts['views/numbers/v1']?.rows).toBe(4)
  })

  test('records become raw Parquet if no view applies, and a canary waits for its start', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet_views'] })
    const canary = aBoundView({ canary_start_ts: '2999-01-01T00:00:00.000Z' })
    await using node = await DeliveryNode.create({ ...endpoint, views: [canary] })
    await node.seal(endpoint.id, '{"n":1}')
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    expect(Object.keys(node.commits[0]?.artifacts ?? {}).toSorted()).toEqual(['manifest', 'parquet'])
    node.configure({ ...endpoint, views: [{ ...canary, canary_start_ts: '2020-01-01T00:00:00.000Z' }] })
    await until('the new configuration', async () => {
      await node.seal(endpoint.id, '{"n":2}')
      return node.commits.some(({ artifacts }) => 'views/numbers/v1' in artifacts)
    })
  })
})

describe('a segment that cannot be converted', () => {
  /** No conversion accepts it. */
  const garbage = Buffer.from('not an envelope')
  const bodies = (id: string) =>
    [
      [id, '{"n":1}'],
      [id, '{"n":2}', garbage],
      [id, '{"n":3}'],
    ] as const

  test('is parked with its reason without blocking later segments', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAll(bodies(endpoint.id))
    const command = (...args: string[]) => runCli(['segments', ...args], { config: node.config })
    await node.start()
    await until('the two others', () => node.commits.length === 2)
    await until('the reason', () => node.lag(endpoint.id)?.blocked_by?.startsWith('1 segment') === true)
    expect(node.commits.map(({ seq }) => seq)).toEqual([0, 2])
    const { code, out } = await command('list')
    expect([code, out]).toEqual([0, expect.stringMatching(/\/1-\w{10} +parked/)])
    expect((await command('retry', 'no-such-segment')).code).toBe(2)
  })

  test('is kept as .quarantine once the operator gives it up', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAll(bodies(endpoint.id))
    const [, name = ''] = await segments(node, endpoint.id)
    await node.start()
    await until('the parking', () => node.lag(endpoint.id)?.parked_segments === 1)
    const id = commitId(await readOrCreateNodeId(node.config.paths, system), name.split(/[-.]/)[1] ?? '', 1)
    expect((await runCli(['segments', 'quarantine', id], { config: node.config })).code).toBe(0)
    expect((await segments(node, endpoint.id)).filter((each) => each.endsWith('.quarantine'))).toEqual([
      name.replace('.wal', '.quarantine'),
    ])
    expect((await runCli(['segments'], { config: node.config })).out).toContain('set aside by the operator: ')
    await until('the report', () => node.lag(endpoint.id)?.quarantined_segments === 1)
    await until('the removal', () => node.lag(endpoint.id)?.undelivered_segments === 0)
    expect(node.lag(endpoint.id)).toMatchObject({ parked_segments: 0 })
  })
})

describe('a damaged segment', () => {
  async function flip(node: DeliveryNode, endpointId: string, offset: (bytes: number) => number): Promise<void> {
    const [name = ''] = await segments(node, endpointId)
    const path = join(node.config.paths.wal, endpointId, name)
    const bytes = await readFile(path)
    const at = offset(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    await writeFile(path, bytes)
  }

  test.each([
    ['header', () => 40, 5],
    ['frame', () => 210, 4],
    ['footer', (bytes: number) => bytes - 20, 5],
  ])('delivers its intact frames if its %s is damaged', async (_, offset, records) => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.sealFrames(endpoint.id, ...[1, 2, 3, 4, 5].map((n) => `{"n":${n},"text":"${'x'.repeat(100)}"}`))
    await flip(node, endpoint.id, offset)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    expect(node.commits[0]).toMatchObject({ records, records_damaged: 5 - records })
    // The original is kept, and shows.
    await until('the report', () => node.lag(endpoint.id)?.quarantined_segments === 1)
    await until('the removal', () => node.lag(endpoint.id)?.undelivered_segments === 0)
    expect(node.lag(endpoint.id)).toMatchObject({ parked_segments: 0 })
  })

  test('that was delivered before it was damaged keeps its commit', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.sealFrames(endpoint.id, ...[1, 2, 3, 4, 5].map((n) => `{"n":${n},"text":"${'x'.repeat(100)}"}`))
    const [name = ''] = await segments(node, endpoint.id)
    const path = join(node.config.paths.wal, endpoint.id, name)
    const sealed = await readFile(path)
    await node.start()
    await until('the removal', async () => (await segments(node, endpoint.id)).length === 0)
    await node.stop()
    await writeFile(path, sealed)
    await flip(node, endpoint.id, () => 210)
    await node.start()
    await until('the removal', async () => !(await segments(node, endpoint.id)).includes(name))
    const { uploaded_at, records, records_damaged, artifacts } = node.commits[0] ?? {}
    expect({ records, records_damaged }).toEqual({ records: 5, records_damaged: 0 })
    for (const commit of node.commits) expect(commit).toMatchObject({ uploaded_at, records, records_damaged, artifacts })
  })

  test('without any intact frame is quarantined, and later segments are delivered', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
    await flip(node, endpoint.id, () => 170)
    await node.start()
    await until('the other', () => node.commits.length === 1)
    await until('the report', () => node.lag(endpoint.id)?.quarantined_segments === 1)
    await until('the removal', () => node.lag(endpoint.id)?.undelivered_segments === 0)
    expect(node.lag(endpoint.id)).toMatchObject({ parked_segments: 0, quarantined_first_seq: 0, quarantined_last_seq: 0 })
  })
})

test('scratch files of a crashed run are removed at the start', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  await systemFiles.makeDirectory(join(node.config.paths.scratch, 'build-dead'))
  await node.start()
  expect(await readdir(node.config.paths.scratch)).toEqual([])
})
