/** A wrong record among those of many endpoints in a real BIND is seen within ten seconds. */
import { pino } from 'pino'
import { test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { address } from '#lib/option-types.ts'
import type { Logger } from '#lib/telemetry.ts'
import { newId, newLabel } from '#model/id.ts'
import { checkLimits } from '#naming/checks/limits.ts'
import { createChecks } from '#naming/checks/start.ts'
import { inChunks } from '#store/chunks.ts'
import { markProvisioned } from '#store/endpoints/endpoints.ts'
import { listDnsChecks } from '#store/naming/dns-checks.ts'
import { updateZone } from '../../tools/services/bind.ts'
import { anAccount } from '../store/fixtures.ts'
import { newStore, postgresUrl } from '../support/databases.ts'
import { describeNameServer, freshDomain } from '../support/name-server.ts'
import { runs } from '../support/thorough.ts'
import { until } from '../support/until.ts'

const count = runs(500, 10_000)
const minuteMs = 60_000

describeNameServer('the names of many endpoints', (nameServer) => {
  test('a wrong record is seen within ten seconds, and the load is bounded', { timeout: 3 * minuteMs }, async () => {
    await using store = await newStore(postgresUrl === undefined ? 'sqlite' : 'postgres')
    const clock = systemClock
    const baseDomain = freshDomain(nameServer)
    const row = { account_id: await anAccount(store), region: 'fra', since_epoch: 0, desired_state: 'active', created_at: 0 }
    const endpoints = Array.from({ length: count }, () => ({ id: newId(), label: newLabel(12) }))
    for (const some of inChunks(endpoints)) {
      await store.db
        .insertInto('endpoints')
        .values(some.map((endpoint) => ({ ...row, ...endpoint, name: endpoint.label })))
        .execute()
      await updateZone(
        nameServer,
        some.map(({ label }) => `add ${label}.fra.${baseDomain} 30 A 192.0.2.1`),
      )
    }
    await markProvisioned(
      store.db,
      endpoints.map(({ id }) => id),
      0,
    )
    const services = createChecks({
      ...{ store, baseDomain, clock, dnsKeeper: 'operator', publisher: undefined },
      leadership: { whileLeading: (work) => work },
      dnsServer: address(nameServer.server),
      dnsNamesPerSecond: checkLimits.namesMax,
      logger: pino({ level: 'silent' }) as unknown as Logger,
    })
    for (const service of services) await service.start()
    try {
      const isChecked = async () => {
        const { checked } = await store.db
          .selectFrom('dns_checks')
          .select(({ fn }) => fn.countAll<number>().as('checked'))
          .executeTakeFirstOrThrow()
        return Number(checked) === count
      }
      await until('every name to be looked up', isChecked, minuteMs)
      const cpu = process.cpuUsage()
      const beganMs = performance.now()
      for (const at of [0.1, 0.5, 0.9]) {
        const { id, label } = endpoints[Math.floor(at * count)] ?? { id: '', label: '' }
        await updateZone(nameServer, [`delete ${label}.fra.${baseDomain} A`, `add ${label}.fra.${baseDomain} 30 A 192.0.2.9`])
        const isSeen = async () => (await listDnsChecks(store.db, [id]))[0]?.answers[0]?.A.join() === '192.0.2.9'
        await until(`the record of ${label} to be seen`, isSeen, 10_000)
      }
      const seconds = (performance.now() - beganMs) / 1000
      const { user, system } = process.cpuUsage(cpu)
      console.info(
        `${count} names: three records in ${seconds.toFixed(1)} s, ${((user + system) / 1e6 / seconds).toFixed(2)} cores`,
      )
    } finally {
      for (const service of services) await service.stop(AbortSignal.timeout(5_000))
    }
  })
})
