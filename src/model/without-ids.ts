import { z } from 'zod'

/** Control gives some schemas ids, which would make references of them: the result must not depend on what else is loaded. */
export const withoutIds = z.registry<z.core.GlobalMeta>()
withoutIds.get = (schema) => {
  const { id, ...known } = z.globalRegistry.get(schema) ?? {}
  return known as never
}
