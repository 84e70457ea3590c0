/** An error for the person at the terminal. Its message includes what to do, and is printed without a stack. */
export class UserError extends Error {
  override readonly name: string = 'UserError'
}
