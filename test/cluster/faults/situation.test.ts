import { expect, test } from 'vitest'
import type { Cluster, ClusterEndpoint } from '../cluster.ts'
import type { RegionCode } from '../layout.ts'
import { cutControl, killControl } from './control.ts'
import { failOver, restartDatabase } from './database.ts'
import type { Fault } from './fault.ts'
import { cutNode, killNodes, restartNodes } from './nodes.ts'
import { deleteRecords } from './records.ts'
import { killNameServer } from './services.ts'
import { canOverlap, hasRightRecords, mayBeNoticed, stopsClients, tellingControls, truthUnder } from './situation.ts'

const cluster = { nodeId: (name: string) => `id of ${name}` } as Cluster
const endpointIn = (region: RegionCode): ClusterEndpoint => ({ id: 'a', region, protocol: 'http', ingestHost: 'a.test' })
const truthOf = (region: RegionCode, ...faults: readonly Fault[]) => truthUnder(faults, cluster)(endpointIn(region))
const killed = (...names: readonly ('fra-1' | 'fra-2' | 'nyc-1')[]) => killNodes('kill-node', names)

test('a region is degraded while a node serves it, and failed after that', () => {
  expect(truthOf('fra', killed('fra-2'))).toEqual({ status: 'degraded', reasons: ['id of fra-2'] })
  expect(truthOf('fra', killed('fra-1', 'fra-2'))).toEqual({ status: 'failed', reasons: ['id of fra-1', 'id of fra-2'] })
  expect(truthOf('nyc', cutNode('nyc-1'))).toEqual({ status: 'failed', reasons: ['id of nyc-1'] })
  expect(truthOf('fra', cutNode('nyc-1'))).toEqual({ status: 'active', reasons: [] })
})

test('the truth under two faults is that of both', () => {
  expect(truthOf('fra', killed('fra-1'), cutNode('fra-2'))).toMatchObject({ status: 'failed' })
  expect(truthOf('fra', killed('fra-1'), killNameServer()).reasons).toEqual(['id of fra-1', 'gave no answer'])
  expect(truthOf('nyc', killed('nyc-1'), killNameServer())).toEqual({ status: 'failed', reasons: ['id of nyc-1'] })
  expect(truthOf('fra', killControl('control-1'), failOver())).toEqual({ status: 'active', reasons: [] })
  expect(tellingControls([killControl('control-1'), killed('fra-1')])).toEqual(['control-2'])
  expect(hasRightRecords([killed('fra-1'), killNameServer()])).toBe(false)
  expect(hasRightRecords([restartDatabase(1)])).toBe(false)
})

test('clients may notice only what takes a node of their region away', () => {
  const [fra, nyc] = [endpointIn('fra'), endpointIn('nyc')]
  const faults = [killed('fra-1'), cutNode('fra-2')]
  expect([mayBeNoticed(faults, fra), stopsClients(faults, fra)]).toEqual([true, true])
  expect([mayBeNoticed(faults, nyc), stopsClients(faults, nyc)]).toEqual([false, false])
  expect([mayBeNoticed([cutNode('nyc-1')], nyc), stopsClients([cutNode('nyc-1')], nyc)]).toEqual([false, false])
  expect(mayBeNoticed([restartNodes('fra')], fra)).toBe(false)
})

test.each<[Fault, Fault, boolean]>([
  [killed('fra-1'), killed('fra-2'), true],
  [killed('fra-1'), killed('fra-1'), false],
  [killed('nyc-1'), restartNodes('fra'), true],
  [killed('fra-1'), restartNodes('fra'), false],
  [killNameServer(), restartNodes('fra'), false],
  [failOver(), restartNodes('fra'), true],
  [killControl('control-1'), cutControl('control-2'), false],
  [killControl('control-1'), restartDatabase(1), false],
  [restartDatabase(1), killNameServer(), true],
  [deleteRecords({ region: 'fra', protocol: 'http' }), killed('fra-1'), false],
])('%#: faults overlap unless one breaks what the other needs', (one, other, may) => {
  expect([canOverlap(one, other), canOverlap(other, one)]).toEqual([may, may])
})
