/**
 * Fills the compile cache (src/main.js), so that the first start is as fast and takes as little memory as later ones. npm runs it after
 * `npm ci`. A file that changes later is compiled by the next start.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/node-compile'))
await import('#cli/main.ts')
await import('#cli/serve/processes.ts')
await import('#cli/serve/supervise.ts')
await import('#cli/serve/check-start.ts')
await import('#control/app.ts')
await import('#delivery/app.ts')
await import('#delivery/convert/worker/run-task.ts')
await import('#ingest/app.ts')
await import('#lib/serve-tasks.ts')
await import('#preview/compare-stored.ts')
await import('#preview/preview.ts')
await import('#preview/suggest.ts')
await import('#query/run-statement.ts')
