import { expect, test } from 'vitest'
import { createLogger } from '#lib/telemetry.ts'
import { DatabaseWatch } from '#store/cluster/database-watch.ts'
import { clusterLimits } from '#store/cluster/limits.ts'
import type { SurveyedServer } from '#store/engines/postgres.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const used: SurveyedServer = {
  ...{ host: 'db-1:5432', state: 'writable', isUsed: true, standing: { system: 'one', timeline: 1, generation: 0 } },
  synchronous: { standby_names: '', commit: 'on', standbys: 1 },
}
const standby: SurveyedServer = { host: 'db-2:5432', state: 'standby', isUsed: false }
const away = [used, standby].map(({ host, isUsed }): SurveyedServer => ({ host, isUsed, state: 'unreachable' }))

test('a problem does not end while no server can be reached', async () => {
  const clock = new ManualClock()
  const lines: string[] = []
  let found: readonly SurveyedServer[] = [used, standby]
  const servers = { count: 2, survey: async () => found }
  const logger = createLogger('control', 'info', undefined, { write: (line: string) => void lines.push(line) })
  const watch = new DatabaseWatch({ servers, clock, logger })
  await watch.start()
  const next = async (servers: readonly SurveyedServer[]) => {
    found = servers
    await until('a survey', async () => {
      clock.advance(clusterLimits.databaseWatchMs)
      return watch.servers === servers
    })
  }
  await until('the problem', async () => watch.notes.length === 1)
  await next(away)
  expect(watch.notes).toHaveLength(1)
  expect(lines.filter((line) => line.includes('problem of the database ended'))).toEqual([])
  await next([{ ...used, synchronous: { standby_names: 'ANY 1 (*)', commit: 'on', standbys: 1 } }, standby])
  await until('the end', async () => watch.notes.length === 0)
  expect(lines.filter((line) => line.includes('problem of the database ended'))).toHaveLength(1)
  await watch.stop()
})
