import { z } from 'zod'

/**
 * Returns a list with at most `max` entries. Checks them one by one and stops at the first that is wrong: a list of a hundred thousand wrong
 * entries takes seconds to find all errors in. For what nodes send; people want to see all errors.
 */
export function boundedList<T extends z.ZodType>(entry: T, max: number) {
  return z
    .array(z.unknown())
    .max(max)
    .transform((entries, context): z.output<T>[] => {
      const checked: z.output<T>[] = []
      for (const [index, each] of entries.entries()) {
        // Without a text of its own an error gets that of the whole input.
        const { data, error } = entry.safeParse(each, { error: () => '', reportInput: true })
        if (error !== undefined) {
          for (const issue of error.issues) context.issues.push({ ...issue, path: [index, ...issue.path] } as z.core.$ZodRawIssue)
          return z.NEVER
        }
        checked.push(data as z.output<T>)
      }
      return checked
    })
}
