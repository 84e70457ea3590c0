import { expect, test } from 'vitest'
import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import type { RegionCode } from '../layout.ts'
import { type Fault, truthUnder } from './fault.ts'
import { cutNode, killNodes } from './nodes.ts'

const cluster = { nodeId: (name: string) => `id of ${name}` } as Cluster
const truthOf = (fault: Fault, region: RegionCode) =>
  truthUnder(fault, cluster)({ id: 'a', region, protocol: 'http', ingestHost: 'a.test' } satisfies ClusterEndpoint)

test('a region is degraded while a node serves it, and failed after that', () => {
  const degraded = { statuses: ['degraded'], reason: 'id of fra-2' }
  expect(truthOf(killNodes('kill-node', ['fra-2']), 'fra')).toEqual(degraded)
  expect(truthOf(killNodes('kill-region', ['fra-1', 'fra-2']), 'fra')).toMatchObject({ statuses: ['failed'] })
  expect(truthOf(cutNode('nyc-1'), 'nyc')).toEqual({ statuses: ['failed'], reason: 'id of nyc-1' })
  expect(truthOf(cutNode('nyc-1'), 'fra')).toEqual({ statuses: ['active'] })
})
