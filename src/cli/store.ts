import { migrate } from '#store/migrate.ts'
import { openStore, type Store } from '#store/store.ts'
import type { CliContext } from './context.ts'

/** Opens the configured database and migrates it to the newest schema. */
export async function openMigratedStore(context: CliContext): Promise<Store & AsyncDisposable> {
  const { databaseUrl, paths } = await context.readConfig()
  const store = await openStore(databaseUrl || paths.database)
  try {
    await migrate(store)
  } catch (error) {
    await store.close()
    throw error
  }
  return { ...store, [Symbol.asyncDispose]: () => store.close() }
}
