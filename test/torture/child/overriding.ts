/** Returns the object with some methods replaced. The others keep their own `this`, so that private fields work. */
export function overriding<T extends object>(object: T, methods: Partial<T>): T {
  return new Proxy(object, {
    get(target, name) {
      const replaced: unknown = Reflect.get(methods, name)
      if (replaced !== undefined) return replaced
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
