// A decode worker that cannot be loaded.
throw new Error("this module is broken");
