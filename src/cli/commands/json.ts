/** The option of every command that prints data. */
export const json = { kind: 'boolean', default: false, withNegated: false, brief: 'print JSON' } as const
