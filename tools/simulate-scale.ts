/**
 * Measures control and Postgres with the configuration and the reports of a large installation: `npm run simulate-scale`.
 *
 * A real Postgres that syncs to disk, and a real control process. The nodes are simulated: they have no data plane, and call control as real
 * ones do. CPU times are those of control and Postgres alone, so they say how many cores an installation needs, whatever the machine.
 * The tables printed are those of docs/scale.md; `--write` puts them there.
 */
import { parseArgs } from 'node:util'
import { measureConfiguration } from './simulate-scale/configuration.ts'
import { Fleet } from './simulate-scale/fleet.ts'
import { Gauge } from './simulate-scale/gauge.ts'
import { measureGrowth } from './simulate-scale/growth.ts'
import { type Scale, startInstallation } from './simulate-scale/installation.ts'
import { measureReports } from './simulate-scale/reports.ts'
import { round, Tables } from './simulate-scale/tables.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '1000' },
    regions: { type: 'string', default: '1' },
    accounts: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10000' },
    keys: { type: 'string', default: '100000' },
    /** How long each kind of report is sent. */
    seconds: { type: 'string', default: '5' },
    /** Commits in the history that housekeeping finds. */
    history: { type: 'string', default: '300000' },
    write: { type: 'boolean', default: false },
    /** Prints the statements that took most time of Postgres. */
    statements: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(
    'npm run simulate-scale -- [--nodes 1000] [--regions 1] [--accounts 1000] [--endpoints 10000] [--keys 100000] [--seconds 5] [--history 300000] [--statements] [--write]',
  )
  process.exit(0)
}
const scale: Scale = {
  nodes: Number(values.nodes),
  regions: Number(values.regions),
  accounts: Number(values.accounts),
  endpoints: Number(values.endpoints),
  keys: Number(values.keys),
}

const startedAt = performance.now()
const progress = (what: string) => console.error(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${what}`)
const tables = new Tables()
const installation = await startInstallation(scale, progress)
try {
  const gauge = await Gauge.open(installation.store, installation.controlPid)
  progress(`joining ${scale.nodes} nodes`)
  const fleet = await Fleet.join(installation, scale.nodes)
  try {
    progress('measuring snapshots and changes')
    await measureConfiguration(installation, fleet, gauge, tables)
    progress('measuring reports')
    await measureReports(fleet, gauge, tables, Number(values.seconds))
  } finally {
    fleet.close()
  }
  progress('measuring growth')
  await measureGrowth(installation, gauge, { scale, history: Number(values.history), tables })
  if (values.statements)
    for (const { query, calls, ms } of await gauge.slowest(25))
      console.error(
        `${round(ms).padStart(8)} ms ${round(calls).padStart(8)} calls  ${query.replaceAll(/\s+/g, ' ').slice(0, 160)}`,
      )
} finally {
  await installation.stop()
}
if (values.write) tables.writeInto(new URL('../docs/scale.md', import.meta.url))
progress('done')
