/** Shadows are counted, write nothing, and hold up nobody. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { BoundView } from '#model/snapshot.ts'
import { aBoundView, aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { readMarkers } from '../support/markers.ts'
import { until } from '../support/until.ts'

const draft = (change: Partial<BoundView> = {}) =>
  aBoundView({
    version: 2,
    definition: { columns: [{ name: 'n', type: 'INTEGER', path: '$.n', required: true }], filters: [{ condition: 'n <> 3' }] },
    ...change,
  })
const body = '{"n":1}\n{"n":"x"}\n{"n":3}'
const broken = { definition: { columns: [{ name: 'n', type: 'NO_SUCH_TYPE', path: '$.n' }] } }

describe('a shadow', () => {
  test('is counted as a view would be, and writes no file', async () => {
    const [view, shadow] = [aBoundView(), draft()]
    const endpoint = anEndpointTo(aDestination(), {
      output_formats: ['parquet', 'parquet_views'],
      views: [view],
      shadows: [shadow],
    })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, body)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    const [commit] = node.commits
    expect(commit?.views).toMatchObject([
      { view_id: view.view_id, processed: 3, accepted: 3, cast_nulls: 1 },
      {
        ...{ view_id: shadow.view_id, view_version: 2, is_shadow: true },
        ...{ processed: 3, accepted: 1, dropped: 1, dlq: 1, failed: 0, errors: { cast_failed: 1 } },
        quality: { columns: [{ name: 'n', values: 1, nulls: 0, cast_dlq: 1 }] },
      },
    ])
    expect(commit?.views[0]).not.toHaveProperty('is_shadow')
    expect(Object.keys(commit?.artifacts ?? {}).filter((kind) => kind.includes('v2'))).toEqual([])
    expect(node.stores.done.filter((key) => key.includes('v2'))).toEqual([])
    const [marker] = readMarkers(join(node.config.paths.buckets, 'bucket'), '', endpoint.id)
    expect(marker?.views).toHaveLength(2)
  })

  test('counts elements and duplicates as a view would', async () => {
    const definition = {
      expand: '$.items[*]',
      columns: [{ name: 'sku', type: 'VARCHAR', path: '$item' }],
      dedupe_by: ['sku'],
    }
    const shadow = draft({ definition })
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['parquet'], shadows: [shadow] })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, '{"items":["a","b","a"]}\n{"items":["b"]}\n{"items":[]}\n{"items":7}')
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    expect(node.commits[0]?.views).toMatchObject([
      { is_shadow: true, processed: 4, accepted: 1, dropped: 2, dlq: 1, rows: 2, duplicates: 2, errors: { expand_failed: 1 } },
    ])
    expect(Object.keys(node.commits[0]?.artifacts ?? {}).toSorted()).toEqual(['manifest', 'parquet'])
  })

  test('runs on segments without views, and with formats that have no views', async () => {
    const endpoint = anEndpointTo(aDestination(), { output_formats: ['segments'], shadows: [draft()] })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, body)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    const [commit] = node.commits
    expect(commit?.views).toMatchObject([{ is_shadow: true, accepted: 1 }])
    expect(Object.keys(commit?.artifacts ?? {}).toSorted()).toEqual(['manifest', 'segment'])
  })

  test('that fails is left out: the other views are delivered, and it rests', async () => {
    const [view, shadow, good] = [aBoundView({ is_required: true }), draft(broken), draft({ name: 'good' })]
    const endpoint = anEndpointTo(aDestination(), {
      output_formats: ['parquet', 'parquet_views'],
      views: [view],
      shadows: [shadow, good],
    })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, body)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    await node.seal(endpoint.id, body)
    await until('the next', () => node.commits.length === 2)
    const [first, second] = node.commits
    const counts = (commit = first) =>
      commit?.views.map(({ view_name, accepted, failed, is_shadow }) => [view_name, accepted, failed, is_shadow ?? false])
    expect(counts()?.toSorted()).toEqual([
      ['good', 1, 0, true],
      ['numbers', 0, 3, true],
      ['numbers', 3, 0, false],
    ])
    expect(first?.views.find(({ failed }) => failed > 0)?.last_error?.message).toContain('cannot be compiled')
    expect(counts(second)).toEqual([
      ['numbers', 3, 0, false],
      ['good', 1, 0, true],
    ])
  })

  test('that is too slow ends soon, and the segment is delivered', { timeout: 60_000 }, async () => {
    const slow = draft({
      definition: {
        columns: [{ name: 'a', type: 'VARCHAR', path: '$.a' }],
        filters: [{ condition: "regexp_matches(a, '(x?){1000}y')" }],
      },
    })
    const endpoint = anEndpointTo(aDestination(), {
      output_formats: ['parquet', 'parquet_views'],
      views: [aBoundView()],
      shadows: [slow],
    })
    await using node = await DeliveryNode.create(endpoint)
    const long = JSON.stringify({ a: 'x'.repeat(64_000) })
    await node.seal(endpoint.id, Array(60).fill(long).join('\n'))
    await node.start()
    await until('the commit', () => node.commits.length === 1, 50_000)
    await node.seal(endpoint.id, '{"n":1}')
    await until('the next', () => node.commits.length === 2)
    const [first, second] = node.commits
    expect(first?.views).toMatchObject([{ accepted: 60 }, { is_shadow: true, failed: 60, last_error: { code: 'too_expensive' } }])
    expect(second?.views).toMatchObject([{ accepted: 1 }])
  })

  test('applies from its start on', async () => {
    const later = draft({ activated_at: '2999-01-01T00:00:00.000Z' })
    const endpoint = anEndpointTo(aDestination(), {
      output_formats: ['parquet', 'parquet_views'],
      views: [aBoundView()],
      shadows: [later],
    })
    await using node = await DeliveryNode.create(endpoint)
    await node.seal(endpoint.id, body)
    await node.start()
    await until('the commit', () => node.commits.length === 1)
    expect(node.commits[0]?.views).toHaveLength(1)
  })
})
