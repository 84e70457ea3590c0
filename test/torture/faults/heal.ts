/** Ends a fault. Undefined if it ends by itself. */
export type Heal = (() => void | Promise<void>) | undefined
