/** An installation with a copy store, and another machine beside it. */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../tools/services/processes.ts'
import { Installation } from './installation.ts'
import { until } from './until.ts'

/** Starts an installation whose node has a copy store in a directory. `objects` are the names of what is copied. */
export async function startWithCopies(environment: Readonly<Record<string, string>> = {}) {
  const installation = await Installation.create()
  const store = join(installation.directory, 'copy-store')
  installation.configure({ INLET_COPY_URL: `file://${store}`, ...environment })
  await installation.start('control', 'ingest', 'delivery')
  const objects = () =>
    readdirSync(store, { recursive: true, encoding: 'utf8' }).filter((path) => /\/[a-z0-9]{10}\/\d{20}$/.test(path))
  return { installation, store, objects }
}

/** Starts a node of the region on another machine, whose settings the installation has from then on. Returns where it takes data. */
export async function startElsewhere(installation: Installation): Promise<string> {
  const other = join(installation.directory, 'other')
  const port = await freePort()
  mkdirSync(other)
  symlinkSync(installation.buckets, join(other, 'buckets'))
  cpSync(join(installation.directory, 'node-token'), join(other, 'node-token'))
  const control = { INLET_CONTROL_URL: installation.nodeApiUrl, INLET_REGION: 'loc' }
  installation.configure({ ...control, INLET_DATA_DIR: other, INLET_INGEST_LISTEN: `127.0.0.1:${port}` })
  installation.spawn('node')
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok === true
  await until('the other node', isReady, 30_000)
  return `http://127.0.0.1:${port}`
}
