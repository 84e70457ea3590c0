/**
 * Runs all benchmarks, one after the other, each in its own process: `npm run bench`, or some by name: `npm run bench -- extract pipeline`.
 * Every figure is printed with its floor from the same run: on a shared machine only the ratios are meaningful.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const all = [
  ...['wal-append', 'http-ingest', 'extract', 'raw-parquet', 'pipeline', 'many-views', 'mqtt', 'snapshot', 'idle-memory'],
  ...['control-hostile', 'fairness', 'console'],
]
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !all.includes(name))
if (unknown.length > 0) {
  console.error(`unknown benchmark: ${unknown.join(', ')}; choose from ${all.join(', ')}`)
  process.exit(2)
}

for (const name of wanted.length > 0 ? wanted : all) {
  console.log(`\n${name}\n`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
