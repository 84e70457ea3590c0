/** `inlet segments`, against the disk of a node whose delivery runs in this process. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { runCli } from '../support/cli.ts'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { aSnapshot } from '../support/ingest-node.ts'
import { snapshotLines } from '../support/snapshot-lines.ts'
import { until } from '../support/until.ts'

const segments = (node: DeliveryNode, ...args: readonly string[]) => runCli(['segments', ...args], { config: node.config })

type Listed = {
  readonly segments: readonly {
    readonly name: string
    readonly log: string
    readonly state: string
    readonly owner: string
    readonly records: number | null
    readonly bytes: number
    readonly reason: string
    readonly path: string
  }[]
  readonly totals: Readonly<Record<string, { readonly segments: number; readonly records: number }>>
}

async function listed(node: DeliveryNode): Promise<Listed> {
  return JSON.parse((await segments(node, 'list', '--json')).out)
}

const files = async (node: DeliveryNode, log: string) =>
  (await readdir(join(node.config.paths.wal, log)).catch(() => [])).filter((name) => /\.(wal|quarantine)/.test(name))

describe('segments list', () => {
  test('an empty node has none', async () => {
    await using node = await DeliveryNode.create()
    expect(await segments(node)).toMatchObject({ code: 0, out: 'There are no segments on this node.\n' })
    expect(await readdir(node.directory)).toEqual([])
  })

  test('lists what waits, with owner and reason, while delivery runs and after it ended', async () => {
    const endpoint = anEndpointTo(aDestination())
    const unowned = newId()
    await using node = await DeliveryNode.create(endpoint)
    node.stores.fault = () => 'refused'
    await node.sealAll([
      [endpoint.id, '{"n":1}\n{"n":2}'],
      [unowned, '{"n":3}'],
    ])
    expect((await listed(node)).segments.map(({ reason }) => reason)).toEqual(['delivery does not run', 'delivery does not run'])
    await node.start()
    const reasons = async () => Object.fromEntries((await listed(node)).segments.map(({ log, reason }) => [log, reason]))
    await until('the reasons', async () => (await reasons())[endpoint.id]?.includes('SlowDown') === true)
    expect((await reasons())[unowned]).toBe(
      `no endpoint owns this log; to deliver it: inlet segments deliver ${unowned} --destination ID`,
    )
    const { segments: found, totals } = await listed(node)
    expect(found.find(({ log }) => log === endpoint.id)).toMatchObject({ owner: endpoint.id, state: 'sealed', records: 2 })
    expect(found.find(({ log }) => log === unowned)?.owner).toMatch(/^none: the endpoint is not in the configuration/)
    expect(totals).toMatchObject({ all: { segments: 2, records: 3 }, unowned: { segments: 1, records: 1 } })
    const { code, out } = await segments(node)
    expect([code, out]).toEqual([0, expect.stringContaining('2 segments, ')])
    expect(out).toContain(`endpoint ${endpoint.id}`)
    expect(await segments(node, 'discard', endpoint.id, '--yes')).toMatchObject({ code: 1 })
    expect(await segments(node, 'discard', unowned, '--yes')).toMatchObject({ code: 0 })
    expect((await listed(node)).segments.map(({ log }) => log)).toEqual([endpoint.id])
  })
})

describe('segments export', () => {
  test('prints every record of the named segments and logs, once', async () => {
    const [one, two] = [newId(), newId()]
    await using node = await DeliveryNode.create()
    await node.sealAll([
      [one, '{"n":1}\n{"n":2}'],
      [one, '{"n":3}'],
      [two, '{"n":4}'],
    ])
    const [first, second] = (await listed(node)).segments.filter(({ log }) => log === one)
    const { code, out, err } = await segments(node, 'export', first?.name ?? '', one)
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ segment, record_index, payload }) => [segment, record_index, payload])).toEqual([
      [first?.name, 0, '{"n":1}'],
      [first?.name, 1, '{"n":2}'],
      [second?.name, 0, '{"n":3}'],
    ])
    expect([code, err]).toEqual([0, '3 records of 2 segments, 2 of them complete\n'])
    const output = join(node.directory, 'two.ndjson')
    expect(await segments(node, 'export', two, '--output', output)).toMatchObject({ code: 0, out: '' })
    expect(await readFile(output, 'utf8')).toContain('"payload":"{\\"n\\":4}"')
    expect(await segments(node, 'export', two, '--output', output)).toMatchObject({
      code: 1,
      err: expect.stringContaining('exists already'),
    })
  })

  test('prints what is intact of a damaged file, and says so', async () => {
    const log = newId()
    await using node = await DeliveryNode.create()
    await node.seal(log, '{"n":1}', '{"n":2}')
    const [first] = (await listed(node)).segments
    const bytes = await readFile(first?.path ?? '')
    await writeFile(first?.path ?? '', bytes.fill(0, bytes.length - 20))
    const { code, out, err } = await segments(node, 'export', log)
    expect([code, out.match(/\n/g)?.length, err]).toEqual([
      1,
      2,
      expect.stringContaining('2 records of 2 segments, 1 of them complete'),
    ])
  })
})

describe('segments deliver', () => {
  test('delivers a log that no endpoint owns, in order, and shows when it is done', async () => {
    const log = newId()
    const account_id = newId()
    const destination = aDestination('elsewhere')
    await using node = await DeliveryNode.create()
    node.control.destinations.set(destination.id, { account_id, destination })
    await node.seal(log, '{"n":1}', '{"n":2}', '{"n":3}')
    await node.start()
    const { code, out } = await segments(node, 'deliver', log, '--destination', destination.id)
    expect([code, out]).toEqual([0, expect.stringContaining('3 segments')])
    await until('the commits', () => node.commits.length === 3)
    expect(node.commits.map(({ seq, endpoint_id }) => [seq, endpoint_id])).toEqual([0, 1, 2].map((seq) => [seq, log]))
    expect(node.commits[0]).toMatchObject({ destination: { id: destination.id, bucket: 'elsewhere' } })
    expect(Object.keys(node.commits[0]?.artifacts ?? {}).toSorted()).toEqual(['manifest', 'parquet', 'segment'])
    await until('the assignment to go', async () => (await readdir(node.config.paths.assignments)).length === 0)
    expect(await files(node, log)).toEqual([])
  })

  test('says that delivery does not run, and the next start delivers', async () => {
    const log = newId()
    const destination = aDestination()
    await using node = await DeliveryNode.create()
    node.control.destinations.set(destination.id, { account_id: newId(), destination })
    await node.seal(log, '{"n":1}')
    const { code, out } = await segments(node, 'deliver', log, '--destination', destination.id)
    expect([code, out]).toEqual([0, expect.stringContaining('delivery does not run')])
    await node.start()
    await until('the commit', () => node.commits.length === 1)
  })

  test('a delivery process that ends in between delivers the rest at its next start, each segment once', async () => {
    const log = newId()
    const destination = aDestination()
    await using node = await DeliveryNode.create()
    node.control.destinations.set(destination.id, { account_id: newId(), destination })
    await node.seal(log, '{"n":1}', '{"n":2}', '{"n":3}')
    node.stores.fault = (key) => (key.includes('-000000000001') ? 'refused' : undefined)
    await node.start()
    const command = segments(node, 'deliver', log, '--destination', destination.id)
    await until('the first commit', () => node.commits.length === 1)
    await node.stop(AbortSignal.abort())
    node.stores.fault = () => undefined
    await node.start()
    await until('the others', () => node.commits.length === 3)
    expect((await command).code).toBe(0)
    expect(node.commits.map(({ seq }) => seq)).toEqual([0, 1, 2])
    // Its file is removed once the node knows of the commit.
    await until('the last removal', async () => (await files(node, log)).length === 0)
  })

  test('goes by the newer configuration if delivery was down when the endpoint was deleted', async () => {
    const endpoint = anEndpointTo(aDestination())
    await using node = await DeliveryNode.create(endpoint)
    await node.sealAll([[endpoint.id, '{"n":1}']])
    const { deliverySnapshot, ingestSnapshot } = node.config.paths
    await writeFile(deliverySnapshot, snapshotLines(aSnapshot({ epoch: 5, endpoints: [endpoint] })))
    await writeFile(ingestSnapshot, snapshotLines(aSnapshot({ epoch: 4, endpoints: [] })))
    expect((await listed(node)).segments).toMatchObject([{ owner: endpoint.id }])
    const refused = await segments(node, 'deliver', endpoint.id, '--destination', newId())
    expect(refused.err).toContain('If the endpoint is deleted, start ingest or delivery')
    await writeFile(ingestSnapshot, snapshotLines(aSnapshot({ epoch: 6, endpoints: [] })))
    expect((await listed(node)).segments).toMatchObject([{ owner: expect.stringContaining('not in the configuration') }])
    expect(await segments(node, 'discard', endpoint.id, '--yes')).toMatchObject({ code: 0 })
  })

  test('refuses what it cannot or must not deliver', async () => {
    const endpoint = anEndpointTo(aDestination())
    const [log, unknown] = [newId(), newId()]
    await using node = await DeliveryNode.create(endpoint)
    node.stores.fault = () => 'refused'
    await node.sealAll([
      [endpoint.id, '{"n":1}'],
      [log, '{"n":1}'],
    ])
    await node.start()
    await until('the configuration', async () => (await listed(node)).segments.some(({ owner }) => owner === endpoint.id))
    expect(await segments(node, 'deliver', log, '--destination', 'lake')).toMatchObject({ code: 2 })
    const results = [
      await segments(node, 'deliver', log, '--destination', unknown),
      await segments(node, 'deliver', newId(), '--destination', unknown),
      await segments(node, 'deliver', endpoint.id, '--destination', unknown),
    ]
    expect(results.map(({ code }) => code)).toEqual([1, 1, 1])
    expect(results.map(({ err }) => err)).toEqual([
      expect.stringContaining(`control has no destination ${unknown}`),
      expect.stringContaining('nothing waits for delivery'),
      expect.stringContaining('give the endpoint another destination'),
    ])
  })
})

describe('segments discard', () => {
  test('removes quarantined and parked segments only with --yes, and nothing else', async () => {
    const log = newId()
    await using node = await DeliveryNode.create()
    await node.seal(log, '{"n":1}', '{"n":2}', '{"n":3}')
    const { segments: sealed } = await listed(node)
    const [first, second, third] = sealed.map(({ name, path }) => ({ name, path }))
    if (first === undefined || second === undefined || third === undefined) throw new Error('three segments were sealed')
    await writeFile(second.path.replace(/wal$/, 'quarantine'), 'damaged')
    await writeFile(
      second.path.replace(/wal$/, 'quarantine.json'),
      '{"reason":"frames are damaged","at":"2026-11-20T08:00:00.000Z","damage":[],"records_lost":2}',
    )
    expect((await listed(node)).segments.find(({ state }) => state === 'quarantined')?.reason).toBe(
      'frames are damaged; at least 2 records are lost',
    )
    const before = await files(node, log)
    expect((await segments(node, 'export', second.name)).out.match(/\n/g)).toHaveLength(1)
    const dry = await segments(node, 'discard', second.name)
    expect([dry.code, dry.out, dry.err]).toEqual([1, expect.stringContaining(second.name), expect.stringContaining('--yes')])
    expect(await segments(node, 'discard', first.name, '--yes')).toMatchObject({ code: 1 })
    expect(await segments(node, 'discard', 'nothing', '--yes')).toMatchObject({ code: 2 })
    expect(await files(node, log)).toEqual(before)
    expect(await segments(node, 'discard', second.name, '--yes')).toMatchObject({ code: 0 })
    expect(await files(node, log)).toEqual(before.filter((name) => !name.includes('quarantine')))
  })
})
