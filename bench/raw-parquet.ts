/** Raw Parquet on one core, compared with bare DuckDB in the same run. `node bench/raw-parquet.ts [MiB] [rounds]` */
import { compare, workloads } from './extract.ts'
import { line } from './measure.ts'

for (const workload of workloads()) {
  const { name, lines, records } = workload
  console.log(
    `${name}: ${(lines.length / 1e6).toFixed(0)} MB, ${records} records of ${(lines.length / records).toFixed(0)} bytes`,
  )
  const { bare, ours } = await compare(workload, Number(process.argv[3] ?? 3))
  const show = (what: string, took: number, comparison = '') => line(what, lines.length, records, took, comparison)
  show('floor: bare DuckDB, loaded lines to Parquet', bare.raw)
  show('loaded records to raw Parquet', ours.raw, `${(bare.raw / ours.raw).toFixed(2)} of the floor (goal 0.7)`)
  show('floor: bare DuckDB, appender and Parquet', bare.load + bare.raw)
  show(
    'frames to raw Parquet',
    ours.load + ours.raw,
    `${((bare.load + bare.raw) / (ours.load + ours.raw)).toFixed(2)} of the floor`,
  )
}
