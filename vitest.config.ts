import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { useOwnSettings } from './test/support/own-settings.ts'
import { ProgressReporter } from './test/support/progress-reporter.ts'

// Tests start hundreds of Node processes. Keeping compiled code between them halves the CPU time of a start.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/node-compile')

useOwnSettings(process.env)

/** The suites, the longest first: a long file that starts late delays the end of the run. */
const order = [
  'containers',
  's3',
  'engines',
  'package',
  'recovery',
  'how-to',
  'crash',
  'browser',
  'e2e',
  'names',
  'damage',
  'delivery',
  'contract-slow',
  'views',
  'contract',
  'ingest',
  'slow',
  'unit',
  'store',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project }: TestSpecification) => order.indexOf(project.name)
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/** Files share the modules of their worker where nothing but modules is shared. */
const setupFiles = ['./test/support/replay-seed.ts', './test/support/watch-processes.ts']
const shared = {
  environment: 'node' as const,
  restoreMocks: true,
  isolate: false,
  setupFiles,
  experimental: { viteModuleRunner: false },
  expect: { poll: { timeout: 10_000 } },
  // A busy machine takes seconds to start a process, and many times as long for what computes.
  hookTimeout: 60_000,
  testTimeout: 60_000,
}
const isolated = { ...shared, isolate: true }

/** Beside the source, but too slow for `npm run check`: they wait for processes and servers that they start. */
const slow = [
  'src/delivery/convert/build/{build,load-segment}.test.ts',
  'src/delivery/convert/conversion-runner.test.ts',
  'src/delivery/convert/worker/shared-database.test.ts',
  'src/ingest/http/otlp/export-conversions.test.ts',
  'src/lib/process-pool.test.ts',
  'src/objects/s3*.test.ts',
  'test/simulation/*.test.ts',
]

/** Random requests and set-ups, and a provider of sign-ins with faults: they run on Postgres, when control changed. */
const slowContract = ['test/contract/{fuzz,setup,setup-docs,setup-property,sign-in-provider-faults}.test.ts']

/** DuckDB, the language of views against it, and what runs it for users in processes of its own: they run when one of these changed. */
const views = [
  'src/duckdb/*.test.ts',
  'src/preview/{compare-rows,compare-stored,hmac,preview,preview-workers,suggest}.test.ts',
  'src/query/{conditions,query-workers}.test.ts',
  'src/records/*.test.ts',
  'src/views/{column-format,computed-columns,expansion*,expression-fuzz,expression-problems,filter-language,function-budgets,text-functions,time-functions,values-in-parquet}.test.ts',
  'test/contract/{preview,query,suggest,view-comparison,view-tests}.test.ts',
  'test/delivery/dense-records.test.ts',
]

/** Suites by what they need: `unit` needs nothing, the others need files, processes and databases of their own. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'bench/**/*.test.ts',
            'console/src/**/*.test.ts',
            'test/torture/**/*.test.ts',
            'test/cluster/**/*.test.ts',
            'test/support/**/*.test.ts',
            'test/architecture.test.ts',
            'test/deploy.test.ts',
            'test/links.test.ts',
          ],
          exclude: [...slow, ...views],
        },
      },
      { test: { ...shared, name: 'slow', include: slow } },
      { test: { ...shared, name: 'views', include: views } },
      { test: { ...shared, name: 'delivery', include: ['test/delivery/**/*.test.ts'], exclude: views } },
      {
        test: {
          ...shared,
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          exclude: [...slowContract, ...views],
        },
      },
      { test: { ...shared, name: 'contract-slow', include: slowContract } },
      // A node alone, with a stand-in for control: no database.
      { test: { ...shared, name: 'ingest', include: ['test/ingest/**/*.test.ts'] } },
      { test: { ...shared, name: 'store', include: ['test/store/**/*.test.ts'] } },
      { test: { ...isolated, name: 'crash', include: ['test/crash/**/*.test.ts'], testTimeout: 120_000 } },
      {
        test: {
          ...isolated,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['./test/support/shared-installation.ts'],
          testTimeout: 180_000,
        },
      },
      {
        test: { ...isolated, name: 'damage', include: ['test/damage/**/*.test.ts'] },
      },
      { test: { ...shared, name: 'names', include: ['test/names/**/*.test.ts'] } },
      {
        test: { ...isolated, name: 'browser', include: ['test/browser/**/*.test.ts'], testTimeout: 120_000 },
      },
      {
        test: {
          ...isolated,
          name: 'recovery',
          include: ['test/recovery/**/*.test.ts'],
          testTimeout: 180_000,
        },
      },
      {
        test: { ...isolated, name: 'package', include: ['test/package/**/*.test.ts'], testTimeout: 180_000 },
      },
      { test: { ...shared, name: 'engines', include: ['test/engines/**/*.test.ts'] } },
      { test: { ...shared, name: 'how-to', include: ['test/how-to/**/*.test.ts'], testTimeout: 300_000 } },
      {
        test: {
          ...isolated,
          name: 'containers',
          include: ['test/containers/**/*.test.ts'],
          testTimeout: 480_000,
        },
      },
      { test: { ...isolated, name: 's3', include: ['test/s3/**/*.test.ts'], testTimeout: 180_000 } },
    ],
    reporters: [new ProgressReporter()],
    sequence: { sequencer: LongestFirst },
    // Many tests wait for processes that they started: one worker more than two processors keeps both busy.
    maxWorkers: Math.max(3, availableParallelism()),
  },
})
